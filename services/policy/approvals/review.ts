import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { Judge } from "../decide/judge.ts";
import type { Policy } from "../rules/policy.ts";
import type { PolicyDatabase } from "../tables.ts";
import { specOf } from "./approval-message.ts";
import type { ApprovalRow } from "./approval-store.ts";
import { type Voidness, voidnessOf } from "./given.ts";
import type { RequestStore } from "./request-store.ts";

/** What becomes of a call that a person has approved, by the policy of today. */
export type Review = { ruleIds: string[]; policyVersion: string } & (
  | { kind: "stands" }
  /** The approval is named where it is what counts no more, and not a rule that denies. */
  | { kind: "falls"; reason: ErrorReason; message: string; approvalId: string }
);

/** Looks again at a call that was approved, before it is released. */
export type Reviewer = (approved: ApprovalRow) => Promise<Review>;

/** What reviewing needs. */
export interface ReviewOptions {
  db: PolicyDatabase;
  requests: Pick<RequestStore, "find">;
  policy: () => Policy;
  judge: Judge;
  now: () => number;
}

/**
 * A reviewer: an approval counts as it does for a call that was kept for its device (`coverOf`), and where the policy is not
 * the one that held the call, the rules of today decide whether it may run at all.
 */
export function createReviewer({ db, requests, policy, judge, now }: ReviewOptions): Reviewer {
  return async (row) => {
    const { principalId, ruleIds } = specOf(row);
    const inForce = policy();
    const held = { ruleIds, policyVersion: inForce.version };
    const voidness = voidnessOf(row, principalId, inForce, now());
    if (voidness !== undefined) return { kind: "falls", ...VOID[voidness], ...held, approvalId: row.id };
    if (inForce.version === row.policy_version) return { kind: "stands", ...held };
    const request = await requests.find(db, row.id);
    if (request === undefined) return { kind: "falls", ...NOT_KEPT, ...held, approvalId: "" };
    const { judgment, policy: judgedBy } = judge({ ...request, time: timestampFromMs(now()) });
    const today = { ruleIds: judgment.ruleIds, policyVersion: judgedBy.version };
    if (judgment.effect === "allow" || judgment.effect === "hold") return { kind: "stands", ...today };
    return { kind: "falls", reason: judgment.reason, message: judgment.message, ...today, approvalId: "" };
  };
}

const VOID: Readonly<Record<Voidness, { reason: ErrorReason; message: string }>> = {
  old: { reason: ErrorReason.APPROVAL_EXPIRED, message: "The approval was given too long ago. Ask again." },
  own: { reason: ErrorReason.FOUR_EYES, message: "Whoever asked may not approve it any more. Ask again." },
};

/** Approvals of an earlier version, which did not keep what was asked. */
const NOT_KEPT = {
  reason: ErrorReason.POLICY_DENIED,
  message: "The rules have changed since it was asked for. Ask again.",
};
