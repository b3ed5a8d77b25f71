import { type Generated, type Kysely, sql } from "kysely";
import { ApprovalState } from "../../../gen/ts/reeve/approval/v1/approval_pb.ts";
import { type OutboxTables, outboxMigration } from "../../../lib/events/outbox.ts";
import type { Database, Migration } from "../../../lib/store/database.ts";
import { type LeaseTables, leaseMigration } from "../../../lib/store/lease.ts";

/** Policy's own tables. Times are milliseconds since 1970. */
export interface PolicyTables extends OutboxTables<"policy_outbox">, LeaseTables<"policy_leases"> {
  /** What was decided about each call, by call id, and where its record is. Never changes. */
  decisions: { call_id: string; digest: string; decision: Uint8Array; idx: number };
  /** Held calls. */
  approvals: ApprovalsTable;
  /** By approval: what was asked (reeve.policy.v1.DecisionRequest), sealed, for as long as it may be released. */
  approval_requests: { approval_id: string; call_id: string; sealed: Uint8Array };
  /** The audit log: the leaves of the Merkle tree, gap-free from 0. */
  records: { idx: number; leaf: Uint8Array; hash: Uint8Array; call_id: string };
  /** Records about a call that are neither its decision nor its end. */
  call_records: { call_id: string; idx: number };
  /** The tree's complete subtrees above the leaves, as far as the newest checkpoint reaches. */
  nodes: { level: number; idx: number; hash: Uint8Array };
  /** Signed heads, by the size they are for, with the fencing token of the lease that they were signed under. */
  checkpoints: { size: number; note: string; time_ms: number; token: number };
  /** How calls ended: the digest of the outcome, and where its record is. */
  outcomes: { call_id: string; digest: string; state: string; idx: number };
  /** What became of devices' identities, by change: its digest, and where its record is. */
  device_changes: { change_id: string; digest: string; idx: number };
  /** The keys that policy signs with, and those it has signed with. */
  keys: KeysTable;
  /** By role and version: who may sign (a signed reeve.common.v1.Keyring). Each change of a key adds one. */
  keyrings: { role: number; version: number; envelope: Uint8Array; time_ms: number };
}

/** One key, from when it was made. Never removed: what it signed is verified with it. */
export interface KeysTable {
  /** Rises: newest last. */
  seq: Generated<number>;
  /** The first 16 hex digits of the SHA-256 of the raw public key. */
  key_id: string;
  /** reeve.key.v1.KeyRole, as a number. */
  role: number;
  /** reeve.key.v1.KeyState, as a number. */
  state: number;
  /** The name that it signs notes under: the audit log's. Empty for grants. */
  name: string;
  /** The raw public key. */
  public: Uint8Array;
  /** The private key, sealed; null once it is retired. */
  sealed: Uint8Array | null;
  create_ms: number;
  /** It signs from then on. */
  sign_ms: number;
  /** It is retired then; null while no other key is to take its place. */
  end_ms: number | null;
}

/** One held call and what became of it. */
export interface ApprovalsTable {
  /** Rises: newest last. */
  seq: Generated<number>;
  id: string;
  /** reeve.approval.v1.ApprovalState, as a number. */
  state: number;
  /** The principal that asked. */
  principal_id: string;
  /** The arguments' length in bytes. */
  held_bytes: number;
  create_ms: number;
  expire_ms: number;
  /** 1 when the requester may not approve it. */
  four_eyes: number;
  policy_version: string;
  /** reeve.approval.v1.ApprovalSpec, sealed. */
  spec: Uint8Array;
  /** SHA-256 of the full text, in hex; empty where the summary is not abridged. */
  full_digest: string;
  /** When arguments, summary and purpose were deleted from the spec. Null while they are kept. */
  bodies_delete_ms: Generated<number | null>;
  /** reeve.policy.v1.Grant without id, times and approver: what a permit will be made from. */
  template: Uint8Array;
  /** How long a grant made from it is valid. */
  grant_ttl_ms: number;
  /** The facts of the record of a permit: reeve.audit.v1.AuditRecord of the hold. */
  hold_record: Uint8Array;
  decide_ms: number | null;
  decided_by: string;
  decided_by_name: string;
  channel: string;
  comment: string;
  /** The index of the record of the human's decision. */
  decide_idx: number | null;
  /** The newest decision since it was approved (reeve.policy.v1.Decision), and until when it is valid: as long as its grant. */
  permit: Uint8Array | null;
  permit_expire_ms: number | null;
  /** The index of the record of its newest change: the hold, then its end. By it replicas find what is new. */
  change_idx: number;
}

export type PolicyDatabase = Database<PolicyTables>;

/** The whole schema. Later changes are migrations of their own. */
export const policyMigrations: readonly Migration[] = [
  {
    name: "policy_0001",
    async up(db) {
      await decisionTables(db);
      await auditTables(db);
      await keyTables(db);
    },
  },
  outboxMigration("policy_outbox"),
  leaseMigration("policy_leases"),
];

async function decisionTables(db: Kysely<unknown>): Promise<void> {
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
    .addColumn("principal_id", "text", (column) => column.notNull())
    .addColumn("held_bytes", "bigint", (column) => column.notNull())
    .addColumn("create_ms", "bigint", (column) => column.notNull())
    .addColumn("expire_ms", "bigint", (column) => column.notNull())
    .addColumn("four_eyes", "integer", (column) => column.notNull())
    .addColumn("policy_version", "text", (column) => column.notNull())
    .addColumn("spec", "bytea", (column) => column.notNull())
    .addColumn("full_digest", "text", (column) => column.notNull())
    .addColumn("bodies_delete_ms", "bigint")
    .addColumn("template", "bytea", (column) => column.notNull())
    .addColumn("grant_ttl_ms", "bigint", (column) => column.notNull())
    .addColumn("hold_record", "bytea", (column) => column.notNull())
    .addColumn("decide_ms", "bigint")
    .addColumn("decided_by", "text", (column) => column.notNull())
    .addColumn("decided_by_name", "text", (column) => column.notNull())
    .addColumn("channel", "text", (column) => column.notNull())
    .addColumn("comment", "text", (column) => column.notNull())
    .addColumn("decide_idx", "bigint")
    .addColumn("permit", "bytea")
    .addColumn("permit_expire_ms", "bigint")
    .addColumn("change_idx", "bigint", (column) => column.notNull())
    .execute();
  await db.schema.createIndex("approvals_state").on("approvals").columns(["state", "expire_ms"]).execute();
  await db.schema.createIndex("approvals_change").on("approvals").column("change_idx").execute();
  await sql`create index approvals_bodies on approvals (create_ms) where bodies_delete_ms is null`.execute(db);
  // Partial: only what waits is counted, so that the many decided ones cost nothing.
  const pending = sql.lit(ApprovalState.PENDING);
  await sql`create index approvals_held on approvals (principal_id) where state = ${pending}`.execute(db);
  await db.schema
    .createTable("approval_requests")
    .addColumn("approval_id", "text", (column) => column.primaryKey())
    .addColumn("call_id", "text", (column) => column.notNull())
    .addColumn("sealed", "bytea", (column) => column.notNull())
    .execute();
}

async function auditTables(db: Kysely<unknown>): Promise<void> {
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
    .addColumn("token", "bigint", (column) => column.notNull())
    .execute();
  await db.schema
    .createTable("outcomes")
    .addColumn("call_id", "text", (column) => column.primaryKey())
    .addColumn("digest", "text", (column) => column.notNull())
    .addColumn("state", "text", (column) => column.notNull())
    .addColumn("idx", "bigint", (column) => column.notNull())
    .execute();
  await db.schema
    .createTable("device_changes")
    .addColumn("change_id", "text", (column) => column.primaryKey())
    .addColumn("digest", "text", (column) => column.notNull())
    .addColumn("idx", "bigint", (column) => column.notNull())
    .execute();
}

async function keyTables(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("keys")
    .addColumn("seq", "bigserial", (column) => column.primaryKey())
    .addColumn("key_id", "text", (column) => column.notNull())
    .addColumn("role", "integer", (column) => column.notNull())
    .addColumn("state", "integer", (column) => column.notNull())
    .addColumn("name", "text", (column) => column.notNull())
    .addColumn("public", "bytea", (column) => column.notNull())
    .addColumn("sealed", "bytea")
    .addColumn("create_ms", "bigint", (column) => column.notNull())
    .addColumn("sign_ms", "bigint", (column) => column.notNull())
    .addColumn("end_ms", "bigint")
    .addUniqueConstraint("keys_key", ["role", "key_id"])
    .execute();
  await db.schema
    .createTable("keyrings")
    .addColumn("role", "integer", (column) => column.notNull())
    .addColumn("version", "bigint", (column) => column.notNull())
    .addColumn("envelope", "bytea", (column) => column.notNull())
    .addColumn("time_ms", "bigint", (column) => column.notNull())
    .addPrimaryKeyConstraint("keyrings_key", ["role", "version"])
    .execute();
}
