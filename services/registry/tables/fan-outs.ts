import type { Migration } from "../../../lib/store/database.ts";

/** The table of fan-outs. */
export interface FanOutTables {
  fan_outs: {
    id: string;
    principal_id: string;
    /** Digest of what was requested, in hex. */
    digest: string;
    /** The waves, as JSON. */
    waves: string;
    /** reeve.fanout.v1.FanOutState, as a number. */
    state: number;
    /** 1 once it has ended. */
    ended: number;
    /** The replica that goes on with it. Empty: none, and any may claim it. */
    owner: string;
    /** 1 once its cancellation was requested. */
    cancel_requested: number;
    started_waves: number;
    /** 1 once policy has permitted it. */
    permitted: number;
    /** The approval that holds or released it; empty where none was required. */
    approval_id: string;
    /** Who started it and by which face, as JSON. */
    origin: string;
    /** reeve.fanout.v1.FanOutSpec, sealed; after the end without params and purpose. */
    spec: Uint8Array;
    /** reeve.fanout.v1.FanOutSummary of the waves so far; null before the first has ended. */
    summary: Uint8Array | null;
    create_ms: number;
    end_ms: number | null;
  };
}

/** Makes the table. */
export const fanOutMigration: Migration = {
  name: "fan_out_0002",
  up: async (db) => {
    await db.schema
      .createTable("fan_outs")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("principal_id", "text", (column) => column.notNull())
      .addColumn("digest", "text", (column) => column.notNull())
      .addColumn("waves", "text", (column) => column.notNull())
      .addColumn("state", "integer", (column) => column.notNull())
      .addColumn("ended", "integer", (column) => column.notNull())
      .addColumn("owner", "text", (column) => column.notNull())
      .addColumn("cancel_requested", "integer", (column) => column.notNull())
      .addColumn("started_waves", "integer", (column) => column.notNull())
      .addColumn("permitted", "integer", (column) => column.notNull())
      .addColumn("approval_id", "text", (column) => column.notNull())
      .addColumn("origin", "text", (column) => column.notNull())
      .addColumn("spec", "bytea", (column) => column.notNull())
      .addColumn("summary", "bytea")
      .addColumn("create_ms", "bigint", (column) => column.notNull())
      .addColumn("end_ms", "bigint")
      .execute();
    await db.schema.createIndex("fan_outs_newest").on("fan_outs").columns(["create_ms", "id"]).execute();
  },
};
