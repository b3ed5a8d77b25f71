import type { Migration } from "../database.ts";
import type { NoteTables } from "./notes.ts";

/** Tags of the notes, numbered by the database. */
export interface TagTables extends NoteTables {
  tags: { seq: number | undefined; note: number; name: string };
}

export const tagMigration: Migration = {
  name: "0002_tags",
  up: (db) =>
    db.schema
      .createTable("tags")
      .addColumn("seq", "bigserial", (column) => column.primaryKey())
      .addColumn("note", "bigint", (column) => column.notNull().references("notes.id"))
      .addColumn("name", "varchar(20)", (column) => column.notNull())
      .execute(),
};
