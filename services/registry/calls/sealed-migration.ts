import { sql } from "kysely";
import type { Migration } from "../../../lib/store/database.ts";

/**
 * Room for what is sealed of a call, and for when it is deleted. Rows of before are marked as not sealed, since a migration
 * has no key: `sealOldCalls` seals them when a registry starts.
 */
export const sealedMigration: Migration = {
  name: "calls_0002_sealed",
  up: async (db) => {
    await db.schema
      .alterTable("calls")
      .addColumn("sealed", "integer", (column) => column.notNull().defaultTo(0))
      .execute();
    for (const name of ["shown", "result"]) await db.schema.alterTable("calls").addColumn(name, "bytea").execute();
    for (const name of ["kept_from_ms", "bodies_delete_ms"])
      await db.schema.alterTable("calls").addColumn(name, "bigint").execute();
    // Partial: rows leave them when they are sealed, or deleted.
    await sql`create index calls_unsealed on calls (row) where sealed = 0`.execute(db);
    await sql`create index calls_bodies on calls (kept_from_ms) where bodies_delete_ms is null and kept_from_ms is not null`.execute(
      db,
    );
  },
};
