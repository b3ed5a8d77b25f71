import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Record, RecordSchema } from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { ApprovalState } from "../../../gen/ts/reeve/policy/v1/approval_pb.ts";
import { type Decision, DecisionSchema } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { GrantSchema } from "../../../gen/ts/reeve/policy/v1/grant_pb.ts";
import type { QueryRunner } from "../../../lib/store/prepared.ts";
import type { AuditLog } from "../audit/log.ts";
import { type DecisionHead, denialDecision, permitDecision, wholePermitDecision } from "../decide/decisions.ts";
import type { GrantMinter, MintedGrant } from "../grants/mint.ts";
import type { RecordedWrites } from "../recorded-writes.ts";
import { specOf } from "./approval-message.ts";
import type { ApprovalRow, ApprovalStore } from "./approval-store.ts";

/** Turns settled approvals into decisions. */
export interface ApprovalRelease {
  /**
   * The decision of an approval that is not pending: a denial, or a permit. While the permit's grant is valid, asking
   * again returns the same one; afterwards a new grant is made, with a record of its own. The permit of a fan-out as a
   * whole carries no grant and stays the same.
   */
  decisionOf(settled: ApprovalRow): Promise<Decision>;
}

/** What releasing needs. */
export interface ReleaseOptions {
  writes: RecordedWrites;
  store: ApprovalStore;
  log: AuditLog;
  minter: GrantMinter;
  now: () => number;
}

/** The end of a permit that carries no grant: there is none. */
const NEVER_MS = Number.MAX_SAFE_INTEGER;

/** Mints grants for approved calls, one at a time for each approval. */
export function createApprovalRelease({ writes, store, log, minter, now }: ReleaseOptions): ApprovalRelease {
  const minting = new Map<string, Promise<Decision>>();

  const validPermit = async (on: QueryRunner, id: string): Promise<Decision | undefined> => {
    const row = await store.find(on, id);
    if (!row?.permit || (row.permit_expire_ms ?? 0) <= now()) return undefined;
    return fromBinary(DecisionSchema, row.permit);
  };
  const mint = async (row: ApprovalRow): Promise<Decision> => {
    const minted = specOf(row).devices.length === 0 ? await mintGrant(row) : undefined;
    return writes.write(async (trx) => {
      const valid = await validPermit(trx, row.id);
      if (valid) return valid;
      const auditIndex = await log.append(trx, permitRecord(row, minted?.grantId ?? "", now()), "here");
      const head = headOf(row, auditIndex);
      const decision = minted ? permitDecision(head, minted) : wholePermitDecision(head);
      await store.keepPermit(trx, row.id, toBinary(DecisionSchema, decision), minted?.expireMs ?? NEVER_MS);
      return decision;
    });
  };
  const mintGrant = (row: ApprovalRow): Promise<MintedGrant> => {
    const release = { approvalId: row.id, approverIds: [row.decided_by] };
    return minter.mint(fromBinary(GrantSchema, row.template), row.grant_ttl_ms, release);
  };
  const permit = (row: ApprovalRow): Promise<Decision> => {
    if (row.permit && (row.permit_expire_ms ?? 0) > now()) {
      return Promise.resolve(fromBinary(DecisionSchema, row.permit));
    }
    const running = minting.get(row.id) ?? mint(row).finally(() => minting.delete(row.id));
    minting.set(row.id, running);
    return running;
  };

  return {
    decisionOf: (row) => (row.state === ApprovalState.APPROVED ? permit(row) : Promise.resolve(refusal(row))),
  };
}

function refusal(row: ApprovalRow): Decision {
  const head = headOf(row, row.decide_idx ?? 0);
  if (row.state === ApprovalState.EXPIRED) {
    const why = row.comment === "" ? "Nobody decided in time." : `Nobody decided: ${row.comment}.`;
    return denialDecision(head, ErrorReason.APPROVAL_EXPIRED, why, row.id);
  }
  const message = row.comment === "" ? "A person said no." : `A person said no: ${row.comment}`;
  return denialDecision(head, ErrorReason.APPROVAL_REJECTED, message, row.id);
}

function headOf(row: ApprovalRow, auditIndex: number): DecisionHead {
  return { ruleIds: specOf(row).ruleIds, policyVersion: row.policy_version, auditIndex };
}

// The record of the hold, with what has changed: all the facts of the call are those that the person decided on.
function permitRecord(row: ApprovalRow, grantId: string, nowMs: number): Record {
  const record = fromBinary(RecordSchema, row.hold_record);
  record.time = timestampFromMs(nowMs);
  if (record.event.case === "decided") Object.assign(record.event.value, { decision: "permit", grantId });
  return record;
}
