import { type Generated, sql } from "kysely";
import type { Migration } from "../../../lib/store/database.ts";

/** The table of calls. */
export interface CallTables {
  calls: {
    /** Row number: the order in which calls were written down. */
    row: Generated<number>;
    id: string;
    device_id: string;
    tool: string;
    principal_id: string;
    /** A CallState. */
    state: number;
    /** 1 when the call has ended. */
    ended: number;
    /** 1 while the audit log has not acknowledged the outcome. */
    outcome_pending: Generated<number>;
    outcome_index: number | null;
    /** The skeleton of the reeve.call.v1.Call: without what is sealed. */
    call: Uint8Array;
    /** The reeve.audit.v1.CallOutcome that the audit log has to get. */
    outcome: Uint8Array | null;
    /** What was asked, sealed: see `Bodies`. Empty once the call has ended, where `shown` is not null, or was deleted. */
    args: Uint8Array;
    /** The replica that owns it and brings its outcome into the audit log. Empty: any may claim it. */
    owner: Generated<string>;
    /** 1 when its cancellation was requested and its owner could not be reached. */
    cancel_wanted: Generated<number>;
    /** What was asked without its secrets, sealed. Null where it has none. */
    shown: Generated<Uint8Array | null>;
    /** What came of it, sealed. */
    result: Generated<Uint8Array | null>;
    /** When its end was on record: from then on the bodies are kept for as long as the retention says. */
    kept_from_ms: Generated<number | null>;
    /** When the bodies were deleted. */
    bodies_delete_ms: Generated<number | null>;
  };
}

/** Makes the table. */
export const callMigration: Migration = {
  name: "0001_calls",
  up: async (db) => {
    await db.schema
      .createTable("calls")
      .addColumn("row", "bigserial", (column) => column.primaryKey())
      .addColumn("id", "text", (column) => column.notNull().unique())
      .addColumn("device_id", "text", (column) => column.notNull())
      .addColumn("tool", "text", (column) => column.notNull())
      .addColumn("principal_id", "text", (column) => column.notNull())
      .addColumn("state", "integer", (column) => column.notNull())
      .addColumn("ended", "integer", (column) => column.notNull())
      .addColumn("outcome_pending", "integer", (column) => column.notNull().defaultTo(0))
      .addColumn("outcome_index", "bigint")
      .addColumn("call", "bytea", (column) => column.notNull())
      .addColumn("outcome", "bytea")
      .addColumn("owner", "text", (column) => column.notNull().defaultTo(""))
      .addColumn("cancel_wanted", "bigint", (column) => column.notNull().defaultTo(0))
      .addColumn("kept_from_ms", "bigint")
      .addColumn("bodies_delete_ms", "bigint")
      // The large ones last: SQLite reads a row up to the last column that is asked for.
      .addColumn("args", "bytea", (column) => column.notNull())
      .addColumn("shown", "bytea")
      .addColumn("result", "bytea")
      .execute();
    // Partial: only the few open rows are indexed, so that the many ended ones cost nothing.
    await sql`create index calls_open on calls (row) where ended = 0`.execute(db);
    await sql`create index calls_outcome_pending on calls (row) where outcome_pending = 1`.execute(db);
    // Partial: rows leave it when their bodies are deleted.
    await sql`create index calls_bodies on calls (kept_from_ms) where bodies_delete_ms is null and kept_from_ms is not null`.execute(
      db,
    );
  },
};
