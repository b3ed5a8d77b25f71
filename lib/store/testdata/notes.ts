import type { Migration } from "../database.ts";

/** A small schema for tests. */
export interface NoteTables {
  notes: { id: number; body: Uint8Array };
}

export const noteMigration: Migration = {
  name: "0001_notes",
  async up(db) {
    await db.schema
      .createTable("notes")
      .addColumn("id", "bigint", (column) => column.primaryKey())
      .addColumn("body", "bytea", (column) => column.notNull())
      .execute();
  },
};
