import type { Policy } from "../rules/policy.ts";
import type { ApprovalRow } from "./approval-store.ts";

/** Why an approval that was given counts no more. */
export type Voidness =
  /** It was given longer ago than approvals last. */
  | "old"
  /** Whoever gave it had asked for it, which the policy of today does not allow. */
  | "own";

/** Why an approval that was given to a principal's call counts no more by the policy of today; undefined where it does. Pure. */
export function voidnessOf(
  { decide_ms, decided_by }: Pick<ApprovalRow, "decide_ms" | "decided_by">,
  principalId: string,
  { approvalValidMs, fourEyes }: Pick<Policy, "approvalValidMs" | "fourEyes">,
  nowMs: number,
): Voidness | undefined {
  if (nowMs - (decide_ms ?? Number.NEGATIVE_INFINITY) > approvalValidMs) return "old";
  return fourEyes && decided_by === principalId ? "own" : undefined;
}
