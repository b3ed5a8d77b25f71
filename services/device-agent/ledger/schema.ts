import { type Kysely, sql } from "kysely";
import type { Migration } from "../../../lib/store/database.ts";

/** Where an execution stands: running or cut off, ended after it was started, refused, or never to be started. */
export type ExecutionState = "started" | EndState;

/** How it ended. */
export type EndState = "finished" | "refused" | "not_started";

/** One row per call id that the device has taken on or settled. Never changes. */
export interface ExecutionTable {
  /** Rises in the order in which calls were taken on. */
  seq: number;
  call_id: string;
  /** Null where the call was settled without a grant. Unique: a grant id is used up by the row that holds it. */
  grant_id: string | null;
  tool: string;
  args_digest: string;
  /** Null where nothing ran. */
  start_ms: number | null;
  /** Whose call it is, by principal id; null where that is not known. */
  principal_id: string | null;
}

/** One row per execution that has ended. Never changes. */
export interface EndTable {
  /** The execution's. */
  seq: number;
  state: EndState;
  /** Number of reeve.device.v1.ExecutionOutcome. */
  outcome: number;
  /** Number of reeve.common.v1.ErrorReason; 0 where it succeeded. */
  reason: number;
  end_ms: number;
  /** reeve.device.v1.Finished, the bytes that every asker gets, sealed. */
  finished: Uint8Array;
  /** reeve.device.v1.LedgerOutput, sealed; null where it printed nothing, or that is not known. */
  output: Uint8Array | null;
}

export interface LedgerTables {
  executions: ExecutionTable;
  ends: EndTable;
  /** One row: every execution up to this number has its end. Written now and then, so it may lag behind. */
  settled: { seq: number };
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
      await db.schema.createIndex("executions_end").on("executions").column("end_ms").execute();
    },
  },
  { name: "0002_ends", up: splitEnds },
  {
    name: "0003_output",
    async up(db) {
      await db.schema.alterTable("executions").addColumn("principal_id", "text").execute();
      await db.schema.alterTable("ends").addColumn("output", "bytea").execute();
    },
  },
];

/** Gives ends a table of their own, so that an end changes no row and no index of what was begun. */
async function splitEnds(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable("executions").renameTo("whole").execute();
  await db.schema
    .createTable("executions")
    .addColumn("seq", "bigserial", (column) => column.primaryKey())
    .addColumn("call_id", "text", (column) => column.notNull().unique())
    .addColumn("grant_id", "text", (column) => column.unique())
    .addColumn("tool", "text", (column) => column.notNull())
    .addColumn("args_digest", "text", (column) => column.notNull())
    .addColumn("start_ms", "bigint")
    .execute();
  await db.schema
    .createTable("ends")
    .addColumn("seq", "bigserial", (column) => column.primaryKey())
    .addColumn("state", "text", (column) => column.notNull())
    .addColumn("outcome", "integer", (column) => column.notNull())
    .addColumn("reason", "integer", (column) => column.notNull())
    .addColumn("end_ms", "bigint", (column) => column.notNull())
    .addColumn("finished", "bytea", (column) => column.notNull())
    .execute();
  await db.schema
    .createTable("settled")
    .addColumn("seq", "bigint", (column) => column.notNull())
    .execute();
  await sql`insert into settled (seq) values (0)`.execute(db);
  await sql`
    insert into executions (call_id, grant_id, tool, args_digest, start_ms)
    select call_id, grant_id, tool, args_digest, start_ms from whole order by rowid`.execute(db);
  await sql`
    insert into ends (seq, state, outcome, reason, end_ms, finished)
    select seq, state, outcome, reason, end_ms, finished from whole join executions using (call_id)
    where end_ms is not null order by seq`.execute(db);
  await db.schema.dropTable("whole").execute();
  // Finds the old rows.
  await db.schema.createIndex("ends_end").on("ends").column("end_ms").execute();
}
