import { sql } from "kysely";
import type { Migration } from "../../lib/store/database.ts";

/** What a decider had to read before a yes, who decided by name, and what is deleted after a while. */
export const wholeMigration: Migration = {
  name: "policy_0005_whole",
  async up(db) {
    await db.schema.alterTable("approvals").addColumn("whole_digest", "text").execute();
    await db.schema
      .alterTable("approvals")
      .addColumn("decided_by_name", "text", (column) => column.notNull().defaultTo(""))
      .execute();
    await db.schema.alterTable("approvals").addColumn("bodies_delete_ms", "bigint").execute();
    await sql`create index approvals_bodies on approvals (create_ms) where bodies_delete_ms is null`.execute(db);
    await db.schema
      .alterTable("approval_requests")
      .addColumn("call_id", "text", (column) => column.notNull().defaultTo(""))
      .execute();
  },
};
