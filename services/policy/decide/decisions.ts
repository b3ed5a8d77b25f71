import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { type Decision, DecisionSchema } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import type { MintedGrant } from "../grants/mint.ts";

/** What every decision says besides its outcome. */
export interface DecisionHead {
  ruleIds: string[];
  policyVersion: string;
  /** The index of the decision's record. */
  auditIndex: number;
}

/** The fan-out may go on: each of its calls asks for a grant of its own. */
export function wholePermitDecision(head: DecisionHead): Decision {
  return decision(head, { case: "permit", value: {} });
}

/** It may run. */
export function permitDecision(head: DecisionHead, { signed, grantId, expireMs }: MintedGrant): Decision {
  const value = { grant: signed, grantId, expireTime: timestampFromMs(expireMs) };
  return decision(head, { case: "permit", value });
}

/** A human must decide. */
export function holdDecision(head: DecisionHead, approvalId: string, expireMs: number, message: string): Decision {
  return decision(head, { case: "hold", value: { approvalId, expireTime: timestampFromMs(expireMs), message } });
}

/** Why a call may not run. */
export interface Why {
  reason: ErrorReason;
  /** Safe to show to the caller. */
  message: string;
  /** The approval that was refused or expired. Default none. */
  approvalId?: string;
  /** Facts about the reason, as in reeve.common.v1.ErrorDetail. Default none. */
  metadata?: Readonly<Record<string, string>>;
}

/** It may not run. */
export function denialDecision(head: DecisionHead, { reason, message, approvalId = "", metadata = {} }: Why): Decision {
  return decision(head, {
    case: "denial",
    value: { reason, userMessage: message, approvalId, metadata: { ...metadata } },
  });
}

type OutcomeInit = NonNullable<Parameters<typeof create<typeof DecisionSchema>>[1]>["outcome"] & object;

function decision({ ruleIds, policyVersion, auditIndex }: DecisionHead, outcome: OutcomeInit): Decision {
  return create(DecisionSchema, { outcome, ruleIds, policyVersion, auditIndex: BigInt(auditIndex) });
}
