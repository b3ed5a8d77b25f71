import { type Generated, sql } from "kysely";
import { type OutboxTables, outboxMigration } from "../../lib/events/outbox.ts";
import type { Migration } from "../../lib/store/database.ts";
import { type LeaseTables, leaseMigration } from "../../lib/store/lease.ts";
import { type EnrollmentTables, enrollmentMigration } from "./enrollment/tables.ts";
import { type FanOutTables, fanOutMigration } from "./fan-out/table.ts";
import { type QueueTables, queueMigration } from "./queue/table.ts";

/** The registry's tables. */
export interface RegistryTables extends OutboxTables, LeaseTables, EnrollmentTables, FanOutTables, QueueTables {
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
  devices: {
    name: string;
    id: string;
    /** The device's pinned public key. */
    public_key: Uint8Array;
    /** The newest signed manifest (reeve.common.v1.SignedEnvelope). */
    manifest: Uint8Array;
    last_seen_ms: number;
    /** A LinkMode: how it was linked last. */
    link_mode: Generated<number>;
    /** The replica that holds its stream; empty where none does. It counts for as long as that replica's lease runs. */
    replica_id: Generated<string>;
    /** Rises with each link: a stream of an older one is over. */
    epoch: Generated<number>;
    /** How often the device had dialed when it attached last. */
    attach_count: Generated<number>;
    /** Rises with each change of what the device's admission depends on: every replica with a session asks again. */
    checks: Generated<number>;
    /** 1 when it was removed: the name is free. */
    removed: Generated<number>;
    /** The number of the newest change of this row; see counters. */
    change: Generated<number>;
  };
  /** Numbers that rise by one in the transaction that they number, so that they are committed in their order. */
  counters: { name: string; value: number };
  /** The replicas: until when each one's lease is valid, and where the others reach it. */
  replicas: { id: string; started_ms: number; expires_ms: number; address: Generated<string> };
  /** What all replicas share, and only they know. */
  secrets: { name: string; value: Uint8Array };
}

/** The counter that numbers the changes of the table of devices. */
export const DEVICE_CHANGES = "devices";

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
      .addColumn("replica_id", "text", (column) => column.notNull().defaultTo(""))
      .addColumn("link_mode", "bigint", (column) => column.notNull().defaultTo(0))
      .addColumn("epoch", "bigint", (column) => column.notNull().defaultTo(0))
      .addColumn("attach_count", "bigint", (column) => column.notNull().defaultTo(0))
      .addColumn("checks", "bigint", (column) => column.notNull().defaultTo(0))
      .addColumn("removed", "bigint", (column) => column.notNull().defaultTo(0))
      .addColumn("change", "bigint", (column) => column.notNull().defaultTo(0))
      .execute();
    await db.schema.createIndex("devices_change").on("devices").column("change").execute();
    await db.schema
      .createTable("counters")
      .addColumn("name", "text", (column) => column.primaryKey())
      .addColumn("value", "bigint", (column) => column.notNull())
      .execute();
    await sql`insert into counters (name, value) values (${sql.lit(DEVICE_CHANGES)}, 0)`.execute(db);
    await db.schema
      .createTable("replicas")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("started_ms", "bigint", (column) => column.notNull())
      .addColumn("expires_ms", "bigint", (column) => column.notNull())
      .addColumn("address", "text", (column) => column.notNull().defaultTo(""))
      .execute();
    await db.schema
      .createTable("secrets")
      .addColumn("name", "text", (column) => column.primaryKey())
      .addColumn("value", "bytea", (column) => column.notNull())
      .execute();
  },
};

/** Every change of the registry's tables, in order. */
export const registryMigrations: readonly Migration[] = [
  calls,
  devices,
  outboxMigration,
  leaseMigration,
  enrollmentMigration,
  fanOutMigration,
  queueMigration,
];
