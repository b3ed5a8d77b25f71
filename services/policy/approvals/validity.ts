import { fromBinary } from "@bufbuild/protobuf";
import { durationMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { ApprovalState } from "../../../gen/ts/reeve/approval/v1/approval_pb.ts";
import type { CallApproval } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { GrantSchema } from "../../../gen/ts/reeve/policy/v1/grant_pb.ts";
import { fanOutCallId } from "../../../lib/ids/fan-out-call-id.ts";
import type { DecisionHead, Denied } from "../decisions/decision.ts";
import type { Evaluated, Evaluator } from "../evaluate/evaluate.ts";
import type { ValidatedRequest } from "../facts/decision-request.ts";
import type { Policy } from "../rules/policy.ts";
import type { PolicyDatabase } from "../storage/tables.ts";
import { callApprovalOf, specOf } from "./approval-message.ts";
import type { ApprovalRow } from "./approval-store.ts";
import type { HeldRequests } from "./held-requests.ts";

/** Why an approval is valid no more. */
type Invalidity =
  /** It was given longer ago than approvals are valid. */
  | "expired"
  /** The principal approved its own call, which the active policy does not allow. */
  | "four_eyes";

/**
 * Who released a call that the rules hold, where the named approval covers it; undefined where a person has to be asked
 * anew. It covers what its summary showed and nothing else: the same principal, tool and arguments, and either this very
 * call on its device, or the one call that its fan-out makes on one of its devices. It must be valid by the active policy.
 * Pure.
 */
export function coveredBy(
  row: ApprovalRow | undefined,
  { call, policy }: Pick<Evaluated, "call" | "policy">,
  nowMs: number,
): CallApproval | undefined {
  if (row?.state !== ApprovalState.APPROVED) return undefined;
  const { principal, tool, argsDigest, timeoutMs } = call;
  const spec = specOf(row);
  const template = fromBinary(GrantSchema, row.template);
  const isSameWork =
    spec.principalId === principal.id &&
    spec.tool === tool.name &&
    spec.argsDigest === argsDigest &&
    template.schemaDigest === tool.schemaDigest &&
    (template.timeout ? durationMs(template.timeout) : 0) === timeoutMs;
  if (!isSameWork || !isOfCall(spec, call) || invalidityOf(row, policy, nowMs) !== undefined) return undefined;
  return callApprovalOf(row);
}

type Spec = ReturnType<typeof specOf>;

function isOfCall(spec: Spec, { request: { callId }, device }: ValidatedRequest): boolean {
  if (spec.devices.length === 0) return spec.callId === callId && spec.deviceId === device.id;
  return callId === fanOutCallId(spec.callId, device.id) && spec.devices.some(({ id }) => id === device.id);
}

/** Why an approval that was given is valid no more by the active policy; undefined where it is. */
function invalidityOf(
  { decide_ms, decided_by, principal_id }: Pick<ApprovalRow, "decide_ms" | "decided_by" | "principal_id">,
  { approvalValidMs, fourEyes }: Pick<Policy, "approvalValidMs" | "fourEyes">,
  nowMs: number,
): Invalidity | undefined {
  if (nowMs - (decide_ms ?? Number.NEGATIVE_INFINITY) > approvalValidMs) return "expired";
  return fourEyes && decided_by === principal_id ? "four_eyes" : undefined;
}

/** Whether an approved call may be released by the active policy; otherwise why it is denied. */
export type Review = { head: DecisionHead; denied: Denied | undefined };

/** Reviews a call that was approved, before it is released. */
export type Reviewer = (approved: ApprovalRow) => Promise<Review>;

export interface ReviewOptions {
  db: PolicyDatabase;
  requests: Pick<HeldRequests, "find">;
  policy: () => Policy;
  evaluate: Evaluator;
  now: () => number;
}

/** A reviewer: the approval must be valid, and where the policy is not the one that held the call, its rules decide anew. */
export function createReviewer({ db, requests, policy, evaluate, now }: ReviewOptions): Reviewer {
  return async (row) => {
    const active = policy();
    const held = { ruleIds: specOf(row).ruleIds, policyVersion: active.version };
    const invalidity = invalidityOf(row, active, now());
    if (invalidity !== undefined) return { head: held, denied: { ...INVALID[invalidity], approvalId: row.id } };
    if (active.version === row.policy_version) return { head: held, denied: undefined };
    const request = await requests.find(db, row.id);
    // Deleted with the call's end, or after the retention.
    if (request === undefined) return { head: held, denied: NOT_KEPT };
    const { evaluation, policy: by } = evaluate({ ...request, time: timestampFromMs(now()) });
    const { effect, reason, message, ruleIds } = evaluation;
    const mayRun = effect === "allow" || effect === "hold";
    return { head: { ruleIds, policyVersion: by.version }, denied: mayRun ? undefined : { reason, message } };
  };
}

const INVALID: Readonly<Record<Invalidity, Denied>> = {
  expired: { reason: ErrorReason.APPROVAL_EXPIRED, message: "The approval was given too long ago. Ask again." },
  four_eyes: { reason: ErrorReason.FOUR_EYES, message: "A caller may not approve its own call any more. Ask again." },
};

const NOT_KEPT: Denied = {
  reason: ErrorReason.POLICY_DENIED,
  message: "The rules have changed since it was approved. Ask again.",
};
