import { type Generated, sql } from "kysely";
import type { Migration } from "../../../lib/store/database.ts";
import { type LeaseTables, leaseMigration } from "../../../lib/store/lease.ts";
import { type WakerTables, wakerMigrations } from "../engine/restate/wakers.ts";

/** The agent service's tables. Times are milliseconds since 1970. */
export interface AgentTables extends LeaseTables<"agent_leases">, WakerTables {
  agent_runs: RunsTable;
  /** What happened in each run, numbered from 1; one for each key, so that what is repeated is stored once. */
  agent_run_events: { run_id: string; sequence: number; key: string; time_ms: number; event: Uint8Array };
  /** What each run waits for, or waited for. */
  agent_run_waits: WaitsTable;
  /** By name: what shows which key the texts are sealed with. */
  agent_sealing: { name: string; value: Uint8Array };
}

/** One run. */
export interface RunsTable {
  /** Rises: newest last. */
  seq: Generated<number>;
  id: string;
  principal_id: string;
  principal_name: string;
  /** Digest of what was requested, in hex. */
  digest: string;
  /** reeve.agent.v1.RunState, as a number. */
  state: number;
  durable: number;
  /** 1 where it may not have devices: this, and not what an engine was handed, decides. */
  untrusted: number;
  cancel_requested: number;
  /** The process that an inline run is in; empty for a durable one. */
  owner: string;
  /** reeve.agent.v1.RunSpec, sealed; without texts once they were removed. */
  spec: Uint8Array;
  /** The frozen input as JSON, sealed; null once texts were removed. */
  input: Uint8Array | null;
  /** reeve.agent.v1.RunStatus as it ended, sealed; null before. */
  status: Uint8Array | null;
  turns: number;
  last_sequence: number;
  create_ms: number;
  start_ms: number | null;
  end_ms: number | null;
  /** When the texts were removed. */
  texts_delete_ms: Generated<number | null>;
}

/** One thing that a run waits for. */
export interface WaitsTable {
  run_id: string;
  /** As in `Steps.answer`. */
  name: string;
  what: string;
  /** The call's or the question's id. */
  ref_id: string;
  approval_id: string;
  /** Sealed; null where there is none. */
  text: Uint8Array | null;
  since_ms: number;
  /** When it came; null while it is waited for. */
  answer_ms: number | null;
}

/** Every change of the agent service's tables, in order. */
export const agentMigrations: readonly Migration[] = [
  {
    name: "agent_0001",
    async up(db) {
      await db.schema
        .createTable("agent_runs")
        .addColumn("seq", "bigserial", (column) => column.primaryKey())
        .addColumn("id", "text", (column) => column.notNull().unique())
        .addColumn("principal_id", "text", (column) => column.notNull())
        .addColumn("principal_name", "text", (column) => column.notNull())
        .addColumn("digest", "text", (column) => column.notNull())
        .addColumn("state", "integer", (column) => column.notNull())
        .addColumn("durable", "integer", (column) => column.notNull())
        .addColumn("untrusted", "integer", (column) => column.notNull())
        .addColumn("cancel_requested", "integer", (column) => column.notNull())
        .addColumn("owner", "text", (column) => column.notNull())
        .addColumn("spec", "bytea", (column) => column.notNull())
        .addColumn("input", "bytea")
        .addColumn("status", "bytea")
        .addColumn("turns", "integer", (column) => column.notNull())
        .addColumn("last_sequence", "integer", (column) => column.notNull())
        .addColumn("create_ms", "bigint", (column) => column.notNull())
        .addColumn("start_ms", "bigint")
        .addColumn("end_ms", "bigint")
        .addColumn("texts_delete_ms", "bigint")
        .execute();
      await db.schema.createIndex("agent_runs_own").on("agent_runs").columns(["principal_id", "seq"]).execute();
      await db.schema.createIndex("agent_runs_state").on("agent_runs").columns(["state", "seq"]).execute();
      await sql`create index agent_runs_texts on agent_runs (end_ms) where texts_delete_ms is null`.execute(db);
      await db.schema
        .createTable("agent_run_events")
        .addColumn("run_id", "text", (column) => column.notNull())
        .addColumn("sequence", "integer", (column) => column.notNull())
        .addColumn("key", "text", (column) => column.notNull())
        .addColumn("time_ms", "bigint", (column) => column.notNull())
        .addColumn("event", "bytea", (column) => column.notNull())
        .addPrimaryKeyConstraint("agent_run_events_key", ["run_id", "sequence"])
        .addUniqueConstraint("agent_run_events_once", ["run_id", "key"])
        .execute();
      await db.schema
        .createTable("agent_run_waits")
        .addColumn("run_id", "text", (column) => column.notNull())
        .addColumn("name", "text", (column) => column.notNull())
        .addColumn("what", "text", (column) => column.notNull())
        .addColumn("ref_id", "text", (column) => column.notNull())
        .addColumn("approval_id", "text", (column) => column.notNull())
        .addColumn("text", "bytea")
        .addColumn("since_ms", "bigint", (column) => column.notNull())
        .addColumn("answer_ms", "bigint")
        .addPrimaryKeyConstraint("agent_run_waits_key", ["run_id", "name"])
        .execute();
      // Partial: what came is looked at no more, and there is ever more of it.
      await sql`create index agent_run_waits_open on agent_run_waits (run_id) where answer_ms is null`.execute(db);
      await db.schema
        .createTable("agent_sealing")
        .addColumn("name", "text", (column) => column.primaryKey())
        .addColumn("value", "bytea", (column) => column.notNull())
        .execute();
    },
  },
  leaseMigration("agent_leases"),
  ...wakerMigrations,
];
