import { type Generated, sql } from "kysely";
import { type OutboxTables, outboxMigration } from "../../lib/events/outbox.ts";
import type { Migration } from "../../lib/store/database.ts";

/** The registry's tables. */
export interface RegistryTables extends OutboxTables {
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
    /** The reeve.registry.v1.Call, without its output. */
    call: Uint8Array;
    /** The reeve.audit.v1.Outcome that the audit log has to get. */
    outcome: Uint8Array | null;
    /** Canonical JSON. */
    args: Uint8Array;
    /** The call's output, as JSON. */
    output: string | null;
  };
  devices: {
    name: string;
    id: string;
    /** The device's pinned public key. */
    public_key: Uint8Array;
    /** The newest signed manifest (reeve.common.v1.Envelope). */
    manifest: Uint8Array;
    last_seen_ms: number;
  };
}

const calls: Migration = {
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
      // The large ones last: SQLite reads a row up to the last column that is asked for.
      .addColumn("args", "bytea", (column) => column.notNull())
      .addColumn("output", "text")
      .execute();
    // Partial: only the few open rows are indexed, so that the many ended ones cost nothing.
    await sql`create index calls_open on calls (row) where ended = 0`.execute(db);
    await sql`create index calls_outcome_pending on calls (row) where outcome_pending = 1`.execute(db);
  },
};

const devices: Migration = {
  name: "0002_devices",
  up: async (db) => {
    await db.schema
      .createTable("devices")
      .addColumn("name", "text", (column) => column.primaryKey())
      .addColumn("id", "text", (column) => column.notNull())
      .addColumn("public_key", "bytea", (column) => column.notNull())
      .addColumn("manifest", "bytea", (column) => column.notNull())
      .addColumn("last_seen_ms", "bigint", (column) => column.notNull())
      .execute();
  },
};

/** Every change of the registry's tables, in order. */
export const registryMigrations: readonly Migration[] = [calls, devices, outboxMigration];
