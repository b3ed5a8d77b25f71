import type { Selectable } from "kysely";
import { ApprovalState } from "../../../gen/ts/reeve/approval/v1/approval_pb.ts";
import { type SealingKey, seal, unseal } from "../../../lib/identity/seal.ts";
import { prepared, type QueryRunner } from "../../../lib/store/prepared.ts";
import type { ApprovalsTable, PolicyDatabase } from "../storage/tables.ts";

export type ApprovalRow = Selectable<ApprovalsTable>;

/** What is stored when a call is held. */
export type NewApproval = Pick<
  ApprovalRow,
  | "full_digest"
  | "principal_id"
  | "held_bytes"
  | "id"
  | "create_ms"
  | "expire_ms"
  | "four_eyes"
  | "policy_version"
  | "spec"
  | "template"
  | "grant_ttl_ms"
  | "hold_record"
  | "change_idx"
>;

/** How an approval ended. */
export type Resolution = Pick<
  ApprovalRow,
  "id" | "state" | "decide_ms" | "decided_by" | "decided_by_name" | "channel" | "comment"
> & {
  decide_idx: number;
};

/**
 * The approvals of policy's database. Pass the transaction inside one, the database elsewhere. What is asked lies there
 * sealed, since it has arguments; rows that are returned have it in clear.
 */
export interface ApprovalStore {
  /** Stores a pending approval, and returns it as it is stored. */
  insert(on: QueryRunner, approval: NewApproval): Promise<ApprovalRow>;
  find(on: QueryRunner, id: string): Promise<ApprovalRow | undefined>;
  /** Writes down how a pending approval ended, which is its newest change; false where it is not pending. */
  resolve(on: QueryRunner, resolution: Resolution): Promise<boolean>;
  /** Keeps the newest decision about an approved call, and until when it stands. */
  keepDecision(on: QueryRunner, id: string, decision: Uint8Array, untilMs: number): Promise<void>;
  /** The pending approvals that expire at or before a time, the earliest first. */
  due(on: QueryRunner, untilMs: number): Promise<ApprovalRow[]>;
  /** When the next pending approval expires; undefined where none is pending. */
  nextExpiry(on: QueryRunner): Promise<number | undefined>;
  /** Every pending approval, oldest first. */
  pending(on: QueryRunner): Promise<ApprovalRow[]>;
  /** The index of the newest change of any approval; -1 where there is none. */
  newestChange(on: QueryRunner): Promise<number>;
  /** The approvals that changed after an index, in the order of their changes. */
  changedAfter(on: QueryRunner, index: number, limit: number): Promise<ApprovalRow[]>;
  /** Approvals below a sequence number, newest first; of one state, or of any (UNSPECIFIED). */
  page(on: QueryRunner, request: { state: ApprovalState; below: number; limit: number }): Promise<ApprovalRow[]>;
}

/** How many are expired in one go. */
const DUE_LIMIT = 100;

/** The table approvals. */
export function createApprovalStore(db: PolicyDatabase, sealing: SealingKey): ApprovalStore {
  const { PENDING } = ApprovalState;
  const insert = prepared((p: NewApproval) =>
    db
      .insertInto("approvals")
      .values({
        id: p.id,
        state: PENDING,
        create_ms: p.create_ms,
        expire_ms: p.expire_ms,
        four_eyes: p.four_eyes,
        policy_version: p.policy_version,
        spec: p.spec,
        template: p.template,
        grant_ttl_ms: p.grant_ttl_ms,
        hold_record: p.hold_record,
        change_idx: p.change_idx,
        full_digest: p.full_digest,
        principal_id: p.principal_id,
        held_bytes: p.held_bytes,
        decided_by: "",
        decided_by_name: "",
        channel: "",
        comment: "",
      })
      .returningAll(),
  );
  const find = prepared((p: { id: string }) => db.selectFrom("approvals").selectAll().where("id", "=", p.id));
  const resolve = prepared((p: Resolution) =>
    db
      .updateTable("approvals")
      .set({
        state: p.state,
        decide_ms: p.decide_ms,
        decided_by: p.decided_by,
        decided_by_name: p.decided_by_name,
        channel: p.channel,
        comment: p.comment,
        decide_idx: p.decide_idx,
        change_idx: p.decide_idx,
      })
      .where("id", "=", p.id)
      .where("state", "=", PENDING),
  );
  const keepDecision = prepared((p: { id: string; decision: Uint8Array; untilMs: number }) =>
    db.updateTable("approvals").set({ permit: p.decision, permit_expire_ms: p.untilMs }).where("id", "=", p.id),
  );
  const due = prepared((p: { until: number }) =>
    db
      .selectFrom("approvals")
      .selectAll()
      .where("state", "=", PENDING)
      .where("expire_ms", "<=", p.until)
      .orderBy("expire_ms")
      .limit(DUE_LIMIT),
  );
  const nextExpiry = prepared(() =>
    db.selectFrom("approvals").select("expire_ms").where("state", "=", PENDING).orderBy("expire_ms").limit(1),
  );
  const pending = prepared(() => db.selectFrom("approvals").selectAll().where("state", "=", PENDING).orderBy("seq"));
  const newestChange = prepared(() =>
    db.selectFrom("approvals").select("change_idx").orderBy("change_idx", "desc").limit(1),
  );
  const changedAfter = prepared((p: { index: number; limit: number }) =>
    db.selectFrom("approvals").selectAll().where("change_idx", ">", p.index).orderBy("change_idx").limit(p.limit),
  );
  const newest = (p: { below: number; limit: number }) =>
    db.selectFrom("approvals").selectAll().where("seq", "<", p.below).orderBy("seq", "desc").limit(p.limit);
  const anyPage = prepared((p: { below: number; limit: number }) => newest(p));
  const statePage = prepared((p: { state: number; below: number; limit: number }) =>
    newest(p).where("state", "=", p.state),
  );
  const open = (row: ApprovalRow): ApprovalRow => ({ ...row, spec: openSpec(sealing, row) });
  return {
    async insert(on, approval) {
      const row = await insert.first(on, { ...approval, spec: sealSpec(sealing, approval) });
      if (row) return { ...row, spec: approval.spec };
      throw new Error("the approval was not inserted");
    },
    async find(on, id) {
      const row = await find.first(on, { id });
      return row && open(row);
    },
    resolve: async (on, resolution) => (await resolve.run(on, resolution)) === 1,
    keepDecision: async (on, id, decision, untilMs) => void (await keepDecision.run(on, { id, decision, untilMs })),
    due: async (on, until) => (await due.all(on, { until })).map(open),
    nextExpiry: async (on) => (await nextExpiry.first(on, {}))?.expire_ms,
    pending: async (on) => (await pending.all(on, {})).map(open),
    newestChange: async (on) => (await newestChange.first(on, {}))?.change_idx ?? -1,
    changedAfter: async (on, index, limit) => (await changedAfter.all(on, { index, limit })).map(open),
    page: async (on, request) => {
      const { UNSPECIFIED } = ApprovalState;
      const rows = await (request.state === UNSPECIFIED ? anyPage.all(on, request) : statePage.all(on, request));
      return rows.map(open);
    },
  };
}

/** What is asked, as it lies in the database. */
export function sealSpec(sealing: SealingKey, { id, spec }: Pick<ApprovalRow, "id" | "spec">): Uint8Array {
  return seal(sealing, spec, contextOf(id));
}

/** What was asked. Throws SealError. */
export function openSpec(sealing: SealingKey, { id, spec }: Pick<ApprovalRow, "id" | "spec">): Uint8Array {
  return unseal(sealing, spec, contextOf(id));
}

function contextOf(approvalId: string): string {
  return `approval/${approvalId}`;
}
