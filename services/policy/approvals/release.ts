import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { ApprovalState } from "../../../gen/ts/reeve/approval/v1/approval_pb.ts";
import { type AuditRecord, AuditRecordSchema, type Decided } from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import { DecisionKind } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { type Decision, DecisionSchema } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { GrantSchema } from "../../../gen/ts/reeve/policy/v1/grant_pb.ts";
import type { QueryRunner } from "../../../lib/store/prepared.ts";
import type { AuditLog } from "../audit/log.ts";
import type { OutcomeStore } from "../audit/outcome-store.ts";
import { type DecisionHead, type Denied, decisionOf, writeDecision } from "../decisions/decision.ts";
import type { GrantMinter, MintedGrant } from "../grants/mint.ts";
import type { RecordedWrites } from "../storage/recorded-writes.ts";
import { callApprovalOf, specOf } from "./approval-message.ts";
import type { ApprovalRow, ApprovalStore } from "./approval-store.ts";
import type { HeldRequests } from "./held-requests.ts";
import type { Review, Reviewer } from "./validity.ts";

/** Turns resolved approvals into decisions. */
export interface ApprovalRelease {
  /**
   * The decision of an approval that is not pending: a denial, or a permit. While the permit's grant is valid and its key
   * trusted, asking again returns the same one; afterwards the call is reviewed again, and a new grant is made, with a
   * record of its own. Where the approval is valid no more, or the active policy denies the call, it is denied, with a record,
   * once and for all. A call that has ended gets no permit any more: CALL_ENDED. The permit of a fan-out carries no grant
   * and stays the same.
   */
  decisionOf(resolved: ApprovalRow): Promise<Decision>;
}

export interface ReleaseOptions {
  writes: RecordedWrites;
  store: Pick<ApprovalStore, "find" | "keepDecision">;
  requests: Pick<HeldRequests, "delete">;
  outcomes: Pick<OutcomeStore, "find">;
  review: Reviewer;
  log: AuditLog;
  minter: GrantMinter;
  /** Whether devices trust what a key has signed, by its id. */
  isTrusted: (keyId: string) => boolean;
  now: () => number;
}

/** The end of a decision that carries no grant: there is none. */
const NEVER_MS = Number.MAX_SAFE_INTEGER;

/** Reviews approved calls and mints grants for them, one at a time for each approval. */
export function createApprovalRelease(options: ReleaseOptions): ApprovalRelease {
  const { writes, store, requests, outcomes, review, log, minter, isTrusted, now } = options;
  const releasing = new Map<string, Promise<Decision>>();

  const kept = (row: ApprovalRow | undefined): Decision | undefined => {
    if (!row?.permit || (row.permit_expire_ms ?? 0) <= now()) return undefined;
    const decision = fromBinary(DecisionSchema, row.permit);
    return signersOf(decision).every(isTrusted) ? decision : undefined;
  };
  const permit = async (trx: QueryRunner, row: ApprovalRow, head: DecisionHead, minted: MintedGrant | undefined) => {
    const record = recordOf(row, { ...head, decision: DecisionKind.PERMIT, grantId: minted?.grantId ?? "" }, now());
    const outcome = { kind: "permit" as const, minted };
    const written = { record, listed: "here" as const, head: { ...head, approval: callApprovalOf(row) }, outcome };
    const { decision } = await writeDecision(log, trx, written);
    await store.keepDecision(trx, row.id, toBinary(DecisionSchema, decision), minted?.expireMs ?? NEVER_MS);
    return decision;
  };
  const deny = async (trx: QueryRunner, row: ApprovalRow, head: DecisionHead, denied: Denied) => {
    const record = recordOf(row, { ...head, decision: DecisionKind.DENIAL, reason: denied.reason }, now());
    const outcome = { kind: "denial" as const, ...denied };
    const written = { record, listed: "here" as const, head: { ...head, approval: callApprovalOf(row) }, outcome };
    const { decision } = await writeDecision(log, trx, written);
    await store.keepDecision(trx, row.id, toBinary(DecisionSchema, decision), NEVER_MS);
    await requests.delete(trx, row.id);
    return decision;
  };
  const release = async (row: ApprovalRow): Promise<Decision> => {
    const { callId, devices } = specOf(row);
    const { head, denied }: Review = await review(row);
    const minted =
      denied === undefined && devices.length === 0
        ? await minter.mint(fromBinary(GrantSchema, row.template), row.grant_ttl_ms, callApprovalOf(row))
        : undefined;
    return writes.write(async (trx) => {
      const known = kept(await store.find(trx, row.id));
      if (known) return known;
      // Canceled at the moment it was approved: the first of the two in the log is right.
      const ended = await outcomes.find(trx, callId);
      if (ended) return endedDecision(row, ended);
      return denied ? deny(trx, row, head, denied) : permit(trx, row, head, minted);
    });
  };
  const approved = (row: ApprovalRow): Promise<Decision> => {
    const known = kept(row);
    if (known) return Promise.resolve(known);
    const running = releasing.get(row.id) ?? release(row).finally(() => releasing.delete(row.id));
    releasing.set(row.id, running);
    return running;
  };

  return {
    decisionOf: (row) => (row.state === ApprovalState.APPROVED ? approved(row) : Promise.resolve(refusal(row))),
  };
}

/** The keys that have signed a permit's grant; none where there is no grant. */
function signersOf({ outcome }: Decision): string[] {
  const grant = outcome.case === "permit" ? outcome.value.grant : undefined;
  return grant?.head?.signatures.map(({ keyId }) => keyId) ?? [];
}

function endedDecision(row: ApprovalRow, { state, idx }: { state: string; idx: number }): Decision {
  const message = `The call has ended already: ${state}.`;
  return decisionOf(headOf(row), idx, { kind: "denial", reason: ErrorReason.CALL_ENDED, message });
}

function refusal(row: ApprovalRow): Decision {
  const denied = { kind: "denial" as const, ...refusalOf(row), approvalId: row.id };
  return decisionOf(headOf(row), row.decide_idx ?? 0, denied);
}

function refusalOf({ state, comment }: ApprovalRow): Denied {
  switch (state) {
    case ApprovalState.CANCELED:
      return { reason: ErrorReason.CALL_ENDED, message: `Not decided: ${comment}.` };
    case ApprovalState.EXPIRED:
      return { reason: ErrorReason.APPROVAL_EXPIRED, message: "The approval expired before it was decided." };
    default: {
      const message = comment === "" ? "The approval was denied." : `The approval was denied: ${comment}`;
      return { reason: ErrorReason.APPROVAL_DENIED, message };
    }
  }
}

function headOf(row: ApprovalRow): DecisionHead {
  return { ruleIds: specOf(row).ruleIds, policyVersion: row.policy_version, approval: callApprovalOf(row) };
}

// The record of the hold, with what has changed: all the facts of the call are those that the person decided on.
function recordOf(row: ApprovalRow, changes: Partial<Decided>, nowMs: number): AuditRecord {
  const record = fromBinary(AuditRecordSchema, row.hold_record);
  record.time = timestampFromMs(nowMs);
  if (record.event.case === "decided") Object.assign(record.event.value, changes);
  return record;
}
