import { CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { isToBeKept } from "../queue/queue.ts";
import type { LiveCall } from "./live-call.ts";
import { awaitApproval, deliver, endOfLink, keep, type RunPorts } from "./run.ts";
import { settleCall } from "./settle.ts";

/**
 * Takes up a call that an earlier process left open. A held one goes on waiting for its human, a kept one for its device.
 * One that was permitted and whose caller asked to keep it is delivered once more, since nobody knows whether it was sent:
 * the device's ledger runs it once, however often it is sent. Any other is settled with the device: one that was never
 * started never will be, because whoever asked was told that the service went away.
 */
export async function recoverCall(live: LiveCall, ports: RunPorts): Promise<void> {
  live.markDecided();
  const { call } = live;
  if (call.state === CallState.HELD) return awaitApproval(live, ports);
  if (call.state === CallState.QUEUED) return deliver(live, ports);
  if (isToBeKept(call) && call.state !== CallState.RECEIVED) {
    return ports.queue.mustKeep(call) ? keep(live, ports) : deliver(live, ports);
  }
  await ports.finisher.finish(live, endOfLink(await settleCall(live, ports), live, ports));
}
