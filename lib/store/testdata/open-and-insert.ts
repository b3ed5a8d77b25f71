import { openDatabase } from "../database.ts";
import { type NoteTables, noteMigration } from "./notes.ts";

// Opens a database at the same time as others, and leaves a note. The URL holds a password, so it is no argument.
const db = await openDatabase<NoteTables>({ url: process.env.DATABASE_URL ?? "", migrations: [noteMigration] });
await db
  .insertInto("notes")
  .values({ id: Number(process.argv[2]), body: new Uint8Array() })
  .execute();
await db.destroy();
