import { sql } from "kysely";
import { ApprovalState } from "../../gen/ts/reeve/approval/v1/approval_pb.ts";
import type { Migration } from "../../lib/store/database.ts";

/** Whose call an approval is for and how large it is, so that what one principal has waiting can be counted. */
export const heldMigration: Migration = {
  name: "policy_0006_held",
  async up(db) {
    await db.schema
      .alterTable("approvals")
      .addColumn("principal_id", "text", (column) => column.notNull().defaultTo(""))
      .execute();
    await db.schema
      .alterTable("approvals")
      .addColumn("held_bytes", "bigint", (column) => column.notNull().defaultTo(0))
      .execute();
    // Partial: only what waits is counted, so that the many decided ones cost nothing.
    const pending = sql.lit(ApprovalState.PENDING);
    await sql`create index approvals_held on approvals (principal_id) where state = ${pending}`.execute(db);
  },
};
