import { create } from "@bufbuild/protobuf";
import { ReconcileCommandSchema } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import type { DeviceEnd, DeviceLink } from "../devices/device-link.ts";
import type { Finisher } from "./finish.ts";
import type { LiveCall } from "./live-call.ts";

/** What settling rests on. */
export interface SettlePorts {
  link(deviceId: string): DeviceLink | undefined;
  finisher: Pick<Finisher, "outputCleaner">;
}

/**
 * Asks a call's device what became of it, and that it never be started after this; a running one goes on, and what it
 * prints is told. Waits for the device for as long as it takes. "lost" for a device that is not known any more.
 */
export async function settleCall(live: LiveCall, { link: linkTo, finisher }: SettlePorts): Promise<DeviceEnd> {
  const link = linkTo(live.call.deviceId);
  if (link === undefined) return { kind: "lost" };
  const { id: callId, tool, argsDigest } = live.call;
  const cleaner = finisher.outputCleaner();
  const settled = link.settle(
    create(ReconcileCommandSchema, { callId, tool, argsDigest }),
    (output) => live.print(cleaner.clean(output)),
    live.followers,
  );
  const onCancel = () => link.cancel(callId);
  live.canceled.signal.addEventListener("abort", onCancel, { once: true });
  if (live.canceled.signal.aborted) onCancel();
  const end = await settled;
  for (const output of cleaner.rest()) void live.print(output);
  live.canceled.signal.removeEventListener("abort", onCancel);
  return end;
}
