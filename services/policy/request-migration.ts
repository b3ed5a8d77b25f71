import type { Migration } from "../../lib/store/database.ts";

/** What was asked about calls that are held, sealed, so that the rules can be asked again before they are released. */
export const requestMigration: Migration = {
  name: "policy_0004_approval_requests",
  async up(db) {
    await db.schema
      .createTable("approval_requests")
      .addColumn("approval_id", "text", (column) => column.primaryKey())
      .addColumn("sealed", "bytea", (column) => column.notNull())
      .execute();
  },
};
