import { sql } from "kysely";
import type { Migration } from "../../../lib/store/database.ts";

/** The table of fan-outs. */
export interface FanOutTables {
  /** What each fan-out was asked for and what was planned, so that trying again goes on where it stood. */
  fan_outs: {
    id: string;
    principal_id: string;
    /** Digest of what was asked for, in hex. */
    digest: string;
    /** The waves, as JSON. */
    waves: string;
    /** 1 when policy has permitted the whole. */
    permitted: number;
    /** The approval that released the whole; empty where none was needed. */
    approval_id: string;
  };
}

/** Makes the table. */
export const fanOutMigration: Migration = {
  name: "fan_out_0001",
  up: async (db) => {
    await db.schema
      .createTable("fan_outs")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("principal_id", "text", (column) => column.notNull())
      .addColumn("digest", "text", (column) => column.notNull())
      .addColumn("waves", "text", (column) => column.notNull())
      .addColumn("permitted", "integer", (column) => column.notNull().defaultTo(sql`0`))
      .addColumn("approval_id", "text", (column) => column.notNull().defaultTo(sql`''`))
      .execute();
  },
};
