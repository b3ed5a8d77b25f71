import { type Generated, sql } from "kysely";
import type { Migration } from "../../../lib/store/database.ts";

/** The tables of devices, of the replicas that hold them, and of what the replicas share. */
export interface DeviceTables {
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

/** Makes the tables. */
export const deviceMigration: Migration = {
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
