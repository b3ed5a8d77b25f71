import type { Selectable } from "kysely";
import { ApprovalState } from "../../../gen/ts/reeve/policy/v1/approval_pb.ts";
import { prepared, type QueryRunner } from "../../../lib/store/prepared.ts";
import type { ApprovalsTable, PolicyDatabase } from "../tables.ts";

/** An approval as it is stored. */
export type ApprovalRow = Selectable<ApprovalsTable>;

/** What is stored when a call is held. */
export type NewApproval = Pick<
  ApprovalRow,
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
export type Settlement = Pick<ApprovalRow, "id" | "state" | "decide_ms" | "decided_by" | "channel" | "comment"> & {
  decide_idx: number;
};

/** The approvals of policy's database. Pass the transaction inside one, the database elsewhere. */
export interface ApprovalStore {
  /** Stores a pending approval, and returns it as it is stored. */
  insert(on: QueryRunner, approval: NewApproval): Promise<ApprovalRow>;
  find(on: QueryRunner, id: string): Promise<ApprovalRow | undefined>;
  /** Writes down how a pending approval ended, which is its newest change; false where it is not pending. */
  settle(on: QueryRunner, settlement: Settlement): Promise<boolean>;
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
export function createApprovalStore(db: PolicyDatabase): ApprovalStore {
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
        decided_by: "",
        channel: "",
        comment: "",
      })
      .returningAll(),
  );
  const find = prepared((p: { id: string }) => db.selectFrom("approvals").selectAll().where("id", "=", p.id));
  const settle = prepared((p: Settlement) =>
    db
      .updateTable("approvals")
      .set({
        state: p.state,
        decide_ms: p.decide_ms,
        decided_by: p.decided_by,
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
  return {
    async insert(on, approval) {
      const row = await insert.first(on, approval);
      if (row) return row;
      throw new Error("the approval was not inserted");
    },
    find: (on, id) => find.first(on, { id }),
    settle: async (on, settlement) => (await settle.run(on, settlement)) === 1,
    keepDecision: async (on, id, decision, untilMs) => void (await keepDecision.run(on, { id, decision, untilMs })),
    due: (on, until) => due.all(on, { until }),
    nextExpiry: async (on) => (await nextExpiry.first(on, {}))?.expire_ms,
    pending: (on) => pending.all(on, {}),
    newestChange: async (on) => (await newestChange.first(on, {}))?.change_idx ?? -1,
    changedAfter: (on, index, limit) => changedAfter.all(on, { index, limit }),
    page: (on, request) =>
      request.state === ApprovalState.UNSPECIFIED ? anyPage.all(on, request) : statePage.all(on, request),
  };
}
