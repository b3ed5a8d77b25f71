import { create } from "@bufbuild/protobuf";
import { SettleSchema } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { CallState } from "../../../gen/ts/reeve/registry/v1/call_pb.ts";
import type { LiveCall } from "./live-call.ts";
import { awaitApproval, deliver, endOfLink, type RunPorts } from "./run.ts";

/**
 * Takes up a call that an earlier process left open. A held one goes on waiting for its human, a kept one for its device. Any other is settled
 * with the device, whose ledger knows whether it ran: one that was never started never will be, because whoever asked
 * was told that the service went away.
 */
export async function recoverCall(live: LiveCall, ports: RunPorts): Promise<void> {
  live.markDecided();
  if (live.call.state === CallState.HELD) return awaitApproval(live, ports);
  if (live.call.state === CallState.QUEUED) return deliver(live, ports);
  const link = ports.link(live.call.deviceId);
  if (link === undefined) return ports.finisher.finish(live, endOfLink({ kind: "lost" }, live, ports));
  const { id: callId, tool, argsDigest } = live.call;
  const cleaner = ports.finisher.outputCleaner();
  const settled = link.settle(create(SettleSchema, { callId, tool, argsDigest }), (output) =>
    live.print(cleaner.clean(output)),
  );
  const onCancel = () => link.cancel(callId);
  live.cancelled.signal.addEventListener("abort", onCancel, { once: true });
  if (live.cancelled.signal.aborted) onCancel();
  const end = await settled;
  for (const output of cleaner.rest()) live.print(output);
  live.cancelled.signal.removeEventListener("abort", onCancel);
  await ports.finisher.finish(live, endOfLink(end, live, ports));
}
