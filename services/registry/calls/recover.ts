import { create } from "@bufbuild/protobuf";
import { SettleSchema } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { CallState } from "../../../gen/ts/reeve/registry/v1/call_pb.ts";
import type { LiveCall } from "./live-call.ts";
import { awaitApproval, endOfLink, type RunPorts } from "./run.ts";

/**
 * Takes up a call that an earlier process left open. A held one goes on waiting for its human. Any other is settled
 * with the device, whose ledger knows whether it ran: one that was never started never will be, because whoever asked
 * was told that the service went away.
 */
export async function recoverCall(live: LiveCall, ports: RunPorts): Promise<void> {
  live.markDecided();
  if (live.call.state === CallState.HELD) return awaitApproval(live, ports);
  const link = ports.link(live.call.deviceId);
  if (link === undefined) return ports.finisher.finish(live, endOfLink({ kind: "lost" }, live, ports));
  const { id: callId, tool, argsDigest } = live.call;
  const end = await link.settle(create(SettleSchema, { callId, tool, argsDigest }));
  await ports.finisher.finish(live, endOfLink(end, live, ports));
}
