import type { Migration } from "../../../lib/store/database.ts";

/** The tables of schedules. */
export interface ScheduleTables {
  schedules: {
    name: string;
    /** reeve.schedule.v1.ScheduleSpec, sealed. */
    spec: Uint8Array;
    /** Digest of the spec, in hex. */
    digest: string;
    /** Who made it, as JSON. */
    creator: string;
    create_ms: number;
    /** When it fires next; null while it is paused. */
    next_ms: number | null;
  };
  schedule_firings: {
    schedule: string;
    scheduled_ms: number;
    call_id: string;
    /** reeve.schedule.v1.FiringState, as a number. */
    state: number;
    /** 1 where RunSchedule asked for it. */
    manual: number;
    message: string;
  };
}

/** Makes the tables. */
export const scheduleMigration: Migration = {
  name: "schedule_0001",
  up: async (db) => {
    await db.schema
      .createTable("schedules")
      .addColumn("name", "text", (column) => column.primaryKey())
      .addColumn("spec", "bytea", (column) => column.notNull())
      .addColumn("digest", "text", (column) => column.notNull())
      .addColumn("creator", "text", (column) => column.notNull())
      .addColumn("create_ms", "bigint", (column) => column.notNull())
      .addColumn("next_ms", "bigint")
      .execute();
    await db.schema.createIndex("schedules_next").on("schedules").column("next_ms").execute();
    await db.schema
      .createTable("schedule_firings")
      .addColumn("schedule", "text", (column) => column.notNull())
      .addColumn("scheduled_ms", "bigint", (column) => column.notNull())
      .addColumn("call_id", "text", (column) => column.notNull())
      .addColumn("state", "integer", (column) => column.notNull())
      .addColumn("manual", "integer", (column) => column.notNull())
      .addColumn("message", "text", (column) => column.notNull())
      .addPrimaryKeyConstraint("schedule_firings_key", ["schedule", "scheduled_ms"])
      .execute();
    await db.schema.createIndex("schedule_firings_state").on("schedule_firings").column("state").execute();
  },
};
