import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type AuditRecord, AuditRecordSchema } from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import { type CallApproval, DecisionKind } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import type { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { type Decision, DecisionSchema } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { functionId } from "../../../lib/ids/function-id.ts";
import type { QueryRunner } from "../../../lib/store/prepared.ts";
import type { AuditLog, Listed } from "../audit/log.ts";
import { deviceToolResource, fanOutToolResource } from "../audit/records.ts";
import { isFanOut, type ValidatedRequest } from "../facts/decision-request.ts";
import type { MintedGrant } from "../grants/mint.ts";

/** What policy answers. */
export type Outcome =
  /** Without a grant for a fan-out, whose calls ask for their own. */
  | { kind: "permit"; minted: MintedGrant | undefined }
  | { kind: "hold"; approvalId: string; expireMs: number; message: string }
  | { kind: "preview"; minted: MintedGrant; previewId: string }
  | ({ kind: "denial" } & Denied);

/** Why a call may not run. */
export interface Denied {
  reason: ErrorReason;
  /** Safe to show to the caller. */
  message: string;
  /** The approval that was denied or expired. Default none. */
  approvalId?: string;
  /** Facts about the reason, as in reeve.common.v1.ErrorDetail. Default none. */
  metadata?: Readonly<Record<string, string>>;
}

/** What every decision names besides its outcome. */
export interface DecisionHead {
  ruleIds: string[];
  policyVersion: string;
  /** The approval that it follows, and who decided. Default none. */
  approval?: CallApproval | undefined;
}

/** A decision whose record was written. */
export interface WrittenDecision {
  decision: Decision;
  /** The record's index. */
  idx: number;
}

/** Appends a decision's record within the transaction, and returns the decision with the record's index. */
export async function writeDecision(
  log: AuditLog,
  trx: QueryRunner,
  { record, listed, head, outcome }: { record: AuditRecord; listed: Listed; head: DecisionHead; outcome: Outcome },
): Promise<WrittenDecision> {
  const idx = await log.append(trx, record, listed);
  return { decision: decisionOf(head, idx, outcome), idx };
}

/** A decision whose record has this index. */
export function decisionOf(
  { ruleIds, policyVersion, approval }: DecisionHead,
  auditIndex: number,
  outcome: Outcome,
): Decision {
  return create(DecisionSchema, {
    outcome: outcomeOf(outcome),
    ruleIds,
    policyVersion,
    auditIndex: BigInt(auditIndex),
    ...(approval && { approval }),
  });
}

type OutcomeInit = NonNullable<Parameters<typeof create<typeof DecisionSchema>>[1]>["outcome"] & object;

function outcomeOf(outcome: Outcome): OutcomeInit {
  switch (outcome.kind) {
    case "permit":
      return { case: "permit", value: outcome.minted ? permitOf(outcome.minted) : {} };
    case "hold": {
      const { approvalId, expireMs, message } = outcome;
      return { case: "hold", value: { approvalId, expireTime: timestampFromMs(expireMs), message } };
    }
    case "preview": {
      const { minted, previewId } = outcome;
      return {
        case: "preview",
        value: { grant: minted.signed, previewId, expireTime: timestampFromMs(minted.expireMs) },
      };
    }
    case "denial": {
      const { reason, message, approvalId = "", metadata = {} } = outcome;
      return { case: "denial", value: { reason, userMessage: message, approvalId, metadata: { ...metadata } } };
    }
  }
}

function permitOf({ signed, grantId, expireMs, obligations }: MintedGrant) {
  return { grant: signed, grantId, expireTime: timestampFromMs(expireMs), ...(obligations && { obligations }) };
}

/** What a record of a decision says besides the request. */
export interface RecordedDecision extends DecisionHead {
  kind: Outcome["kind"];
  /** Why, for a denial. */
  reason: ErrorReason;
  grantId?: string;
  approvalId?: string;
  nowMs: number;
}

const KINDS: Readonly<Record<Outcome["kind"], DecisionKind>> = {
  permit: DecisionKind.PERMIT,
  hold: DecisionKind.HOLD,
  denial: DecisionKind.DENIAL,
  preview: DecisionKind.PREVIEW,
};

/** The record of a decision about a call, or about a fan-out: its resource says so, and its device is the first. */
export function decidedRecord(call: ValidatedRequest, decided: RecordedDecision): AuditRecord {
  const { request, principal, device, tool, argsDigest } = call;
  return create(AuditRecordSchema, {
    version: 1,
    time: timestampFromMs(decided.nowMs),
    actor: principal.id,
    callId: request.callId,
    resource: isFanOut(request)
      ? fanOutToolResource(request.callId, tool.name)
      : deviceToolResource(device.id, tool.name),
    event: {
      case: "decided",
      value: {
        decision: KINDS[decided.kind],
        reason: decided.reason,
        ruleIds: decided.ruleIds,
        policyVersion: decided.policyVersion,
        tool: tool.name,
        deviceId: device.id,
        argsDigest,
        grantId: decided.grantId ?? "",
        approvalId: decided.approvalId ?? "",
        ingress: request.ingress,
        manifestDigest: device.manifestDigest,
        functionId: functionId(tool.capabilities),
      },
    },
  });
}
