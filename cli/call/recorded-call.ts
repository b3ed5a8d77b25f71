import { setTimeout as sleep } from "node:timers/promises";
import { isEnd } from "../../client/call-progress.ts";
import { type CompleteCall, completeCall } from "../../client/complete-call.ts";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import type { Session } from "../session.ts";

/** How long to wait before each new look, in milliseconds: 2 seconds in all. */
const LOOKS_MS = [10, 20, 40, 80, 150, 200, 300, 400, 400, 400];

/** Ends that policy wrote down itself, with the decision: no other record of them comes. */
const RECORDED_BY_POLICY: ReadonlySet<CallState> = new Set([CallState.DENIED, CallState.EXPIRED]);

/**
 * The call with the place of its end in the audit log: it is written through an outbox, a moment after the caller has
 * the result. After 2 seconds the call is returned without it.
 */
export async function recordedCall({ registry }: Pick<Session, "registry">, call: CompleteCall): Promise<CompleteCall> {
  if (RECORDED_BY_POLICY.has(call.status.state)) return call;
  let latest = call;
  for (const ms of LOOKS_MS) {
    if (latest.status.outcomeAuditIndex !== undefined || !isEnd(latest.status.state)) break;
    await sleep(ms);
    latest = completeCall((await registry.getCall({ callId: call.id })).call ?? latest);
  }
  return latest;
}
