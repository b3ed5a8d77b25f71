import type { DecisionRequest } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";

/** True for a question about the whole of a fan-out, whose permit carries no grant. */
export function asksAboutWhole({ devices }: Pick<DecisionRequest, "devices">): boolean {
  return devices.length > 0;
}

/**
 * The key under which a decision is kept: the call's id, and for a call that was kept for its device the number of the
 * delivery. No call id holds a "#".
 */
export function decisionKey({ callId, delivery }: Pick<DecisionRequest, "callId" | "delivery">): string {
  return delivery === 0 ? callId : `${callId}#${delivery}`;
}
