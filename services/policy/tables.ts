import type { Generated } from "kysely";
import type { OutboxTables } from "../../lib/events/outbox.ts";
import type { Database, Migration } from "../../lib/store/database.ts";

/** Policy's own database. Times are milliseconds since 1970. */
export interface PolicyTables extends OutboxTables {
  /** What was decided about each call, by call id, and where its record is. Never changes. */
  decisions: { call_id: string; digest: string; decision: Uint8Array; idx: number };
  /** Held calls. */
  approvals: ApprovalsTable;
  /** The audit log: the leaves of the Merkle tree, gap-free from 0. */
  records: { idx: number; leaf: Uint8Array; hash: Uint8Array; call_id: string };
  /** Records about a call that are neither its decision nor its end. */
  call_records: { call_id: string; idx: number };
  /** The tree's complete subtrees above the leaves, as far as the newest checkpoint reaches. */
  nodes: { level: number; idx: number; hash: Uint8Array };
  /** Signed heads, by the size they are for. */
  checkpoints: { size: number; note: string; time_ms: number };
  /** How calls ended: the digest of the outcome, and where its record is. */
  outcomes: { call_id: string; digest: string; state: string; idx: number };
}

/** One held call and what became of it. */
export interface ApprovalsTable {
  /** Rises: newest last. */
  seq: Generated<number>;
  id: string;
  /** reeve.policy.v1.ApprovalState, as a number. */
  state: number;
  create_ms: number;
  expire_ms: number;
  /** 1 when the requester may not approve it. */
  four_eyes: number;
  policy_version: string;
  /** reeve.policy.v1.ApprovalSpec. */
  spec: Uint8Array;
  /** reeve.policy.v1.Grant without id, times and approver: what a permit will be made from. */
  template: Uint8Array;
  /** How long a grant made from it is valid. */
  grant_ttl_ms: number;
  /** The facts of the record of a permit: reeve.audit.v1.Record of the hold. */
  hold_record: Uint8Array;
  decide_ms: number | null;
  decided_by: string;
  channel: string;
  comment: string;
  /** The index of the record of the human's decision. */
  decide_idx: number | null;
  /** The newest permit (reeve.policy.v1.Decision), and when its grant ends. */
  permit: Uint8Array | null;
  permit_expire_ms: number | null;
}

/** Policy's database. */
export type PolicyDatabase = Database<PolicyTables>;

/** Makes the tables. */
export const policyMigrations: readonly Migration[] = [
  {
    name: "policy_0001",
    async up(db) {
      await db.schema
        .createTable("decisions")
        .addColumn("call_id", "text", (column) => column.primaryKey())
        .addColumn("digest", "text", (column) => column.notNull())
        .addColumn("decision", "bytea", (column) => column.notNull())
        .addColumn("idx", "bigint", (column) => column.notNull())
        .execute();
      await db.schema
        .createTable("approvals")
        .addColumn("seq", "bigserial", (column) => column.primaryKey())
        .addColumn("id", "text", (column) => column.notNull().unique())
        .addColumn("state", "integer", (column) => column.notNull())
        .addColumn("create_ms", "bigint", (column) => column.notNull())
        .addColumn("expire_ms", "bigint", (column) => column.notNull())
        .addColumn("four_eyes", "integer", (column) => column.notNull())
        .addColumn("policy_version", "text", (column) => column.notNull())
        .addColumn("spec", "bytea", (column) => column.notNull())
        .addColumn("template", "bytea", (column) => column.notNull())
        .addColumn("grant_ttl_ms", "bigint", (column) => column.notNull())
        .addColumn("hold_record", "bytea", (column) => column.notNull())
        .addColumn("decide_ms", "bigint")
        .addColumn("decided_by", "text", (column) => column.notNull())
        .addColumn("channel", "text", (column) => column.notNull())
        .addColumn("comment", "text", (column) => column.notNull())
        .addColumn("decide_idx", "bigint")
        .addColumn("permit", "bytea")
        .addColumn("permit_expire_ms", "bigint")
        .execute();
      await db.schema.createIndex("approvals_state").on("approvals").columns(["state", "expire_ms"]).execute();
    },
  },
  {
    name: "policy_0002_audit",
    async up(db) {
      await db.schema
        .createTable("records")
        .addColumn("idx", "bigint", (column) => column.primaryKey())
        .addColumn("leaf", "bytea", (column) => column.notNull())
        .addColumn("hash", "bytea", (column) => column.notNull())
        .addColumn("call_id", "text", (column) => column.notNull())
        .execute();
      await db.schema
        .createTable("call_records")
        .addColumn("call_id", "text", (column) => column.notNull())
        .addColumn("idx", "bigint", (column) => column.notNull())
        .addPrimaryKeyConstraint("call_records_key", ["call_id", "idx"])
        .execute();
      await db.schema
        .createTable("nodes")
        .addColumn("level", "integer", (column) => column.notNull())
        .addColumn("idx", "bigint", (column) => column.notNull())
        .addColumn("hash", "bytea", (column) => column.notNull())
        .addPrimaryKeyConstraint("nodes_key", ["level", "idx"])
        .execute();
      await db.schema
        .createTable("checkpoints")
        .addColumn("size", "bigint", (column) => column.primaryKey())
        .addColumn("note", "text", (column) => column.notNull())
        .addColumn("time_ms", "bigint", (column) => column.notNull())
        .execute();
      await db.schema
        .createTable("outcomes")
        .addColumn("call_id", "text", (column) => column.primaryKey())
        .addColumn("digest", "text", (column) => column.notNull())
        .addColumn("state", "text", (column) => column.notNull())
        .addColumn("idx", "bigint", (column) => column.notNull())
        .execute();
    },
  },
];
