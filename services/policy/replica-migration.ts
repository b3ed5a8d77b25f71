import { sql } from "kysely";
import type { Migration } from "../../lib/store/database.ts";

/** What several replicas on one database need: who signed a checkpoint, what changed last, and the keys of all. */
export const replicaMigration: Migration = {
  name: "policy_0003_replicas",
  async up(db) {
    await db.schema
      .alterTable("checkpoints")
      .addColumn("token", "bigint", (column) => column.notNull().defaultTo(0))
      .execute();
    await db.schema
      .alterTable("approvals")
      .addColumn("change_idx", "bigint", (column) => column.notNull().defaultTo(0))
      .execute();
    await sql`update approvals set change_idx = coalesce(decide_idx, 0)`.execute(db);
    await db.schema.createIndex("approvals_change").on("approvals").column("change_idx").execute();
    await db.schema
      .createTable("device_changes")
      .addColumn("change_id", "text", (column) => column.primaryKey())
      .addColumn("digest", "text", (column) => column.notNull())
      .addColumn("idx", "bigint", (column) => column.notNull())
      .execute();
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
  },
};
