import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Approval, type ApprovalSpec, ApprovalState } from "../../../gen/ts/reeve/approval/v1/approval_pb.ts";
import { type AuditRecord, AuditRecordSchema } from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { Outbox } from "../../../lib/events/outbox.ts";
import { fault, reasonOf } from "../../../lib/fault/fault.ts";
import type { QueryRunner } from "../../../lib/store/prepared.ts";
import type { AuditLog } from "../audit/log.ts";
import { approvalSettled } from "../events.ts";
import type { RecordedWrites } from "../recorded-writes.ts";
import { approvalOf, specOf, stateName } from "./approval-message.ts";
import type { ApprovalRow, ApprovalStore } from "./approval-store.ts";
import type { ApprovalChanges } from "./changes.ts";
import type { RequestStore } from "./request-store.ts";

/** One person's decision. */
export interface HumanDecision {
  approvalId: string;
  /** Who decides, by principal id. */
  decidedBy: string;
  /** Their name, for people. Default none. */
  decidedByName?: string;
  comment: string;
  /** From where; empty means "rpc". */
  channel: string;
}

/** Ends pending approvals: by a person, or because nobody decided in time. */
export interface ApprovalSettler {
  /**
   * Says yes. Throws NOT_FOUND, APPROVAL_DECIDED, APPROVAL_EXPIRED, INVALID_INPUT where the card is not the one that was
   * shown, or is cut and the whole was not read, and FOUR_EYES where the requester may not approve.
   */
  approve(decision: HumanDecision & { cardDigest: string; wholeDigest: string; fourEyes: boolean }): Promise<Approval>;
  /** Says no. Throws NOT_FOUND, APPROVAL_DECIDED and APPROVAL_EXPIRED. */
  deny(decision: HumanDecision): Promise<Approval>;
  /** Ends one that nobody decided; nothing happens where it was decided meanwhile. */
  expire(approvalId: string): Promise<void>;
  /**
   * Ends one whose call has ended without it, inside the caller's transaction. Undefined where it is not pending;
   * otherwise the approval; `changes.look` is to be called after the commit.
   */
  withdraw(trx: QueryRunner, approvalId: string, comment: string): Promise<Approval | undefined>;
}

/** What a settler needs. */
export interface SettleOptions {
  writes: RecordedWrites;
  store: ApprovalStore;
  requests: Pick<RequestStore, "forget">;
  log: AuditLog;
  outbox: Outbox;
  changes: Pick<ApprovalChanges, "look">;
  now: () => number;
}

type Ending = Pick<ApprovalRow, "state" | "decided_by" | "decided_by_name" | "comment" | "channel">;

/** The end of an approval that nobody decided. */
const UNDECIDED: Ending = {
  state: ApprovalState.EXPIRED,
  decided_by: "",
  decided_by_name: "",
  comment: "",
  channel: "",
};

/**
 * The first decision wins: state, record and event are one transaction, which changes nothing where the approval is not
 * pending any more.
 */
export function createApprovalSettler(options: SettleOptions): ApprovalSettler {
  const { writes, store, requests, log, outbox, changes, now } = options;
  const end = async (trx: QueryRunner, row: ApprovalRow, ending: Ending): Promise<ApprovalRow> => {
    const nowMs = now();
    const spec = specOf(row);
    const decide_idx = await log.append(trx, settledRecord(row.id, spec, ending, nowMs), "here");
    const settled = { id: row.id, ...ending, decide_ms: nowMs, decide_idx };
    if (!(await store.settle(trx, settled))) throw decided(row);
    if (ending.state !== ApprovalState.APPROVED) await requests.forget(trx, row.id);
    const event = { approvalId: row.id, callId: spec.callId, state: ending.state as ApprovalState, nowMs };
    await outbox.enqueue(trx, [approvalSettled({ ...event, decidedBy: ending.decided_by })]);
    return { ...row, ...settled, change_idx: decide_idx };
  };
  const settle = async (id: string, ending: Ending, check: (row: ApprovalRow) => void): Promise<Approval> => {
    const row = await writes.write(async (trx) => {
      const pending = await store.find(trx, id);
      if (!pending)
        throw fault(ErrorReason.NOT_FOUND, { resource: `approvals/${id}` }, { message: "no such approval" });
      if (pending.state !== ApprovalState.PENDING) throw decided(pending);
      check(pending);
      return end(trx, pending, ending);
    });
    changes.look();
    return approvalOf(row);
  };
  const refuseLate = (row: ApprovalRow): void => {
    if (row.expire_ms > now()) return;
    throw fault(ErrorReason.APPROVAL_EXPIRED, { approval_id: row.id }, { message: "nobody decided in time" });
  };

  return {
    approve: (decision) =>
      settle(decision.approvalId, endingOf(ApprovalState.APPROVED, decision), (row) => {
        refuseLate(row);
        checkCard(row, decision.cardDigest);
        checkWhole(row, decision.wholeDigest);
        checkFourEyes(row, decision);
      }),
    deny: (decision) => settle(decision.approvalId, endingOf(ApprovalState.DENIED, decision), refuseLate),
    async expire(approvalId) {
      await settle(approvalId, UNDECIDED, () => {}).catch((e: unknown) => {
        if (reasonOf(e) !== ErrorReason.APPROVAL_DECIDED) throw e;
      });
    },
    async withdraw(trx, approvalId, comment) {
      const row = await store.find(trx, approvalId);
      if (row?.state !== ApprovalState.PENDING) return undefined;
      return approvalOf(await end(trx, row, { ...UNDECIDED, state: ApprovalState.CANCELED, comment }));
    },
  };
}

function endingOf(state: ApprovalState, { decidedBy, decidedByName = "", comment, channel }: HumanDecision): Ending {
  return { state, decided_by: decidedBy, decided_by_name: decidedByName, comment, channel: channel || "rpc" };
}

function checkCard(row: ApprovalRow, cardDigest: string): void {
  if (specOf(row).cardDigest === cardDigest) return;
  throw wrongDigest(
    "card_digest",
    "cardDigest",
    "is not the digest of the approval's card",
    "look at the approval again",
  );
}

/** In the place of the whole's digest where an earlier version cut the card and did not keep what the whole was. */
export const CUT_UNKNOWN = "unknown";

/** What a card leaves out may be approved only by who has fetched it. */
function checkWhole(row: ApprovalRow, wholeDigest: string): void {
  if (row.whole_digest === CUT_UNKNOWN) {
    throw wrongDigest(
      "whole_digest",
      "wholeDigest",
      "cannot be given for a call held before an upgrade",
      "deny it, and call again",
    );
  }
  const wanted = row.whole_digest ?? "";
  if (wholeDigest === wanted || (wanted === "" && wholeDigest === specOf(row).cardDigest)) return;
  const missing = wholeDigest === "";
  throw wrongDigest(
    "whole_digest",
    "wholeDigest",
    missing ? "is needed, since the card does not show everything" : "is not the digest of all that would run",
    "read the whole approval first (GetApproval with APPROVAL_VIEW_FULL, or `reeve approvals show ID --full`)",
  );
}

function wrongDigest(rule: string, field: string, what: string, remedy: string): Error {
  return fault(
    ErrorReason.INVALID_INPUT,
    { field: rule, rule },
    { message: `${field}: ${what}; ${remedy}`, violations: [{ field, message: what }] },
  );
}

function checkFourEyes(row: ApprovalRow, { decidedBy, fourEyes }: { decidedBy: string; fourEyes: boolean }): void {
  if (row.four_eyes === 0 && !fourEyes) return;
  if (specOf(row).principalId !== decidedBy) return;
  throw fault(ErrorReason.FOUR_EYES, { approval_id: row.id }, { message: "who asked may not approve" });
}

function decided(row: ApprovalRow): Error {
  const state = stateName(row.state);
  return fault(ErrorReason.APPROVAL_DECIDED, { approval_id: row.id, state }, { message: `it is ${state} already` });
}

function settledRecord(approvalId: string, spec: ApprovalSpec, ending: Ending, nowMs: number): AuditRecord {
  const { cardDigest, argsDigest } = spec;
  return create(AuditRecordSchema, {
    version: 1,
    time: timestampFromMs(nowMs),
    actor: ending.decided_by === "" ? "policy" : ending.decided_by,
    callId: spec.callId,
    resource: `approvals/${approvalId}`,
    event: {
      case: "approvalDecided",
      value: { approvalId, state: stateName(ending.state), channel: ending.channel, cardDigest, argsDigest },
    },
  });
}
