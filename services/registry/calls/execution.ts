import { create } from "@bufbuild/protobuf";
import { CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import {
  ExecuteCommandSchema,
  type ExecutionOutput,
  ReconcileCommandSchema,
} from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import type { Permit } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import type { DeviceEnd, DeviceLink } from "../devices/device-link.ts";
import type { KnownDevice } from "../devices/known-device.ts";
import { acceptFinished, type CallEnd, canceledEnd, failedEnd } from "./end.ts";
import type { LiveCall } from "./live-call.ts";

/** What executing calls depends on. */
export interface ExecutionPorts {
  device(id: string): KnownDevice | undefined;
  link(deviceId: string): DeviceLink | undefined;
}

/** Sends a call to its device with its grant, and resolves with what became of it there. */
export function execute(live: LiveCall, permit: Permit, link: DeviceLink): Promise<DeviceEnd> {
  const command = create(ExecuteCommandSchema, {
    callId: live.call.id,
    tool: live.call.spec.tool,
    arguments: live.args,
    ...(permit.grant === undefined ? {} : { grant: permit.grant }),
  });
  return watched(live, link, (print) => link.start(command, print, live.followers));
}

/**
 * Asks a call's device what became of it, and that it never be started after this; a running one goes on, and its output
 * is shown. Waits for the device for as long as it takes. "lost" for a device that is not known any more.
 */
export async function reconcile(live: LiveCall, ports: ExecutionPorts): Promise<CallEnd> {
  const { id: callId, spec } = live.call;
  const { deviceId, tool, argsDigest } = spec;
  const link = ports.link(deviceId);
  if (link === undefined) return endOnDevice({ kind: "lost" }, live, ports);
  const command = create(ReconcileCommandSchema, { callId, tool, argsDigest });
  return endOnDevice(await watched(live, link, (print) => link.reconcile(command, print, live.followers)), live, ports);
}

/** Passes on what the call prints while it runs, as it comes from the device, and its cancel to the device. */
async function watched(
  live: LiveCall,
  link: DeviceLink,
  run: (print: (output: ExecutionOutput) => Promise<void> | undefined) => Promise<DeviceEnd>,
): Promise<DeviceEnd> {
  const { signal } = live.canceled;
  const onCancel = () => link.cancel(live.call.id);
  const running = run(live.print);
  signal.addEventListener("abort", onCancel, { once: true });
  if (signal.aborted) onCancel();
  const end = await running;
  signal.removeEventListener("abort", onCancel);
  return end;
}

/** What a device's end means for the call. */
export function endOnDevice(end: DeviceEnd, { call }: LiveCall, ports: Pick<ExecutionPorts, "device">): CallEnd {
  const known = ports.device(call.spec.deviceId);
  const device = known?.name ?? call.spec.deviceId;
  switch (end.kind) {
    case "finished":
      return acceptFinished(end.finished, call, known);
    case "offline": {
      const message = `${device} is offline; nothing ran${end.why ? `: ${end.why}` : ""}`;
      return failedEnd(fault(ErrorReason.DEVICE_OFFLINE, { device }, { message }));
    }
    case "canceled":
      return canceledEnd();
    case "lost": {
      const message = "the device went offline after the call was sent; what it did is not known";
      return {
        ...failedEnd(fault(ErrorReason.INTERRUPTED, { device }, { message })),
        state: CallState.UNKNOWN,
      };
    }
  }
}
