import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Approval, type ApprovalSpec, ApprovalState } from "../../../gen/ts/reeve/approval/v1/approval_pb.ts";
import { type AuditRecord, AuditRecordSchema } from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { Outbox } from "../../../lib/events/outbox.ts";
import { fault, reasonOf } from "../../../lib/fault/fault.ts";
import type { QueryRunner } from "../../../lib/store/prepared.ts";
import type { AuditLog } from "../audit/log.ts";
import type { RecordedWrites } from "../storage/recorded-writes.ts";
import { approvalOf, specOf, stateName } from "./approval-message.ts";
import type { ApprovalRow, ApprovalStore } from "./approval-store.ts";
import type { ChangeFeed } from "./change-feed.ts";
import { approvalResolved } from "./events.ts";
import type { HeldRequests } from "./held-requests.ts";

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

/** Ends pending approvals: by a person's decision, by time, or with their call. */
export interface ApprovalResolver {
  /**
   * Throws NOT_FOUND, APPROVAL_DECIDED, APPROVAL_EXPIRED, INVALID_INPUT where the summary is not the one that was shown, or
   * is abridged and the full text was not read, and FOUR_EYES where the principal may not approve its own call.
   */
  approve(
    decision: HumanDecision & { summaryDigest: string; fullDigest: string; fourEyes: boolean },
  ): Promise<Approval>;
  /** Throws NOT_FOUND, APPROVAL_DECIDED and APPROVAL_EXPIRED. */
  deny(decision: HumanDecision): Promise<Approval>;
  /** Ends one that was not decided in time; nothing happens where it was decided meanwhile. */
  expire(approvalId: string): Promise<void>;
  /**
   * Ends one whose call has ended, inside the caller's transaction. Undefined where it is not pending; otherwise the
   * approval, and the feed is to be woken after the commit.
   */
  cancel(trx: QueryRunner, approvalId: string, comment: string): Promise<Approval | undefined>;
}

export interface ResolverOptions {
  writes: RecordedWrites;
  store: ApprovalStore;
  requests: Pick<HeldRequests, "delete">;
  log: AuditLog;
  outbox: Outbox;
  changes: Pick<ChangeFeed, "wake">;
  now: () => number;
}

type Ending = Pick<ApprovalRow, "state" | "decided_by" | "decided_by_name" | "comment" | "channel">;

/** The end of an approval without a decision. */
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
export function createApprovalResolver(options: ResolverOptions): ApprovalResolver {
  const { writes, store, requests, log, outbox, changes, now } = options;
  const end = async (trx: QueryRunner, row: ApprovalRow, ending: Ending): Promise<ApprovalRow> => {
    const nowMs = now();
    const spec = specOf(row);
    const decide_idx = await log.append(trx, resolvedRecord(row.id, spec, ending, nowMs), "here");
    const resolved = { id: row.id, ...ending, decide_ms: nowMs, decide_idx };
    if (!(await store.resolve(trx, resolved))) throw decided(row);
    if (ending.state !== ApprovalState.APPROVED) await requests.delete(trx, row.id);
    const event = { approvalId: row.id, callId: spec.callId, state: ending.state as ApprovalState, nowMs };
    await outbox.enqueue(trx, [approvalResolved({ ...event, decidedBy: ending.decided_by })]);
    return { ...row, ...resolved, change_idx: decide_idx };
  };
  const resolve = async (id: string, ending: Ending, check: (row: ApprovalRow) => void): Promise<Approval> => {
    const row = await writes.write(async (trx) => {
      const pending = await store.find(trx, id);
      if (!pending)
        throw fault(ErrorReason.NOT_FOUND, { resource: `approvals/${id}` }, { message: "no such approval" });
      if (pending.state !== ApprovalState.PENDING) throw decided(pending);
      check(pending);
      return end(trx, pending, ending);
    });
    changes.wake();
    return approvalOf(row);
  };
  const refuseLate = (row: ApprovalRow): void => {
    if (row.expire_ms > now()) return;
    throw fault(ErrorReason.APPROVAL_EXPIRED, { approval_id: row.id }, { message: "it was not decided in time" });
  };

  return {
    approve: (decision) =>
      resolve(decision.approvalId, endingOf(ApprovalState.APPROVED, decision), (row) => {
        refuseLate(row);
        checkSummary(row, decision.summaryDigest);
        checkFullText(row, decision.fullDigest);
        checkFourEyes(row, decision);
      }),
    deny: (decision) => resolve(decision.approvalId, endingOf(ApprovalState.DENIED, decision), refuseLate),
    async expire(approvalId) {
      await resolve(approvalId, UNDECIDED, () => {}).catch((e: unknown) => {
        if (reasonOf(e) !== ErrorReason.APPROVAL_DECIDED) throw e;
      });
    },
    async cancel(trx, approvalId, comment) {
      const row = await store.find(trx, approvalId);
      if (row?.state !== ApprovalState.PENDING) return undefined;
      return approvalOf(await end(trx, row, { ...UNDECIDED, state: ApprovalState.CANCELED, comment }));
    },
  };
}

function endingOf(state: ApprovalState, { decidedBy, decidedByName = "", comment, channel }: HumanDecision): Ending {
  return { state, decided_by: decidedBy, decided_by_name: decidedByName, comment, channel: channel || "rpc" };
}

function checkSummary(row: ApprovalRow, digest: string): void {
  if (specOf(row).summaryDigest === digest) return;
  throw wrongDigest(
    "summary_digest",
    "summaryDigest",
    "is not the digest of its summary",
    "look at the approval again",
  );
}

/** What a summary leaves out may be approved only by who has fetched it. */
function checkFullText(row: ApprovalRow, digest: string): void {
  if (digest === row.full_digest || (row.full_digest === "" && digest === specOf(row).summaryDigest)) return;
  const what = digest === "" ? "is required, since the summary is abridged" : "is not the digest of the full text";
  const remedy = "read the full text first (GetApproval with APPROVAL_VIEW_FULL, or `reeve approval show ID --full`)";
  throw wrongDigest("full_text_digest", "fullTextDigest", what, remedy);
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
  throw fault(ErrorReason.FOUR_EYES, { approval_id: row.id }, { message: "a caller may not approve its own call" });
}

function decided(row: ApprovalRow): Error {
  const state = stateName(row.state);
  return fault(ErrorReason.APPROVAL_DECIDED, { approval_id: row.id, state }, { message: `it is ${state} already` });
}

function resolvedRecord(approvalId: string, spec: ApprovalSpec, ending: Ending, nowMs: number): AuditRecord {
  const { summaryDigest, argsDigest } = spec;
  return create(AuditRecordSchema, {
    version: 1,
    time: timestampFromMs(nowMs),
    actor: ending.decided_by === "" ? "policy" : ending.decided_by,
    callId: spec.callId,
    resource: `approvals/${approvalId}`,
    event: {
      case: "approvalDecided",
      value: { approvalId, state: ending.state as ApprovalState, channel: ending.channel, summaryDigest, argsDigest },
    },
  });
}
