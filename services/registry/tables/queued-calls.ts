import type { Migration } from "../../../lib/store/database.ts";

/** The table of calls that may be queued for an offline device. */
export interface QueueTables {
  /** What policy is asked again about each such call, besides the call itself. */
  queued_calls: {
    call_id: string;
    /** How often policy was asked about it again. */
    delivery: number;
    /** The caller's roles, by number, as JSON. */
    roles: string;
    /** The longest it may run. */
    timeout_ms: number;
  };
}

/** Makes the table. */
export const queueMigration: Migration = {
  name: "queue_0001",
  up: async (db) => {
    await db.schema
      .createTable("queued_calls")
      .addColumn("call_id", "text", (column) => column.primaryKey())
      .addColumn("delivery", "integer", (column) => column.notNull())
      .addColumn("roles", "text", (column) => column.notNull())
      .addColumn("timeout_ms", "bigint", (column) => column.notNull())
      .execute();
  },
};
