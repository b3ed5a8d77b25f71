import type { Migration } from "../../../lib/store/database.ts";

/** Where an execution stands: running or cut off, ended after it was started, refused, or never to be started. */
export type ExecutionState = "started" | "finished" | "refused" | "not_started";

/** One row per call id that the device has taken on or settled. */
export interface ExecutionTable {
  call_id: string;
  /** Null where the call was settled without a grant. Unique: a grant id is used up by the row that holds it. */
  grant_id: string | null;
  tool: string;
  args_digest: string;
  state: ExecutionState;
  /** Number of reeve.device.v1.ExecutionOutcome; null until it ended. */
  outcome: number | null;
  /** Number of reeve.common.v1.ErrorReason; null until it ended, 0 where it succeeded. */
  reason: number | null;
  /** Null where nothing ran. */
  start_ms: number | null;
  /** Null until it ended. */
  end_ms: number | null;
  /** reeve.device.v1.Finished, the bytes that every asker gets, sealed; null until it ended. */
  finished: Uint8Array | null;
}

export interface LedgerTables {
  executions: ExecutionTable;
}

/** The ledger's schema. */
export const ledgerMigrations: readonly Migration[] = [
  {
    name: "0001_executions",
    async up(db) {
      await db.schema
        .createTable("executions")
        .addColumn("call_id", "text", (column) => column.primaryKey())
        .addColumn("grant_id", "text", (column) => column.unique())
        .addColumn("tool", "text", (column) => column.notNull())
        .addColumn("args_digest", "text", (column) => column.notNull())
        .addColumn("state", "text", (column) => column.notNull())
        .addColumn("outcome", "integer")
        .addColumn("reason", "integer")
        .addColumn("start_ms", "bigint")
        .addColumn("end_ms", "bigint")
        .addColumn("finished", "bytea")
        .execute();
      // Finds the old rows, and the ones without an end: those have NULL here.
      await db.schema.createIndex("executions_end").on("executions").column("end_ms").execute();
    },
  },
];
