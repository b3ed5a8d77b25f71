import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Kysely, sql } from "kysely";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Database, type Migration, openDatabase } from "./database.ts";
import { type NoteTables, noteMigration } from "./testdata/notes.ts";
import { type TagTables, tagMigration } from "./testdata/tags.ts";

let directory: string;
let path: string;
const opened: Kysely<never>[] = [];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "reeve-store-"));
  path = join(directory, "state.db");
});

afterEach(async () => {
  await Promise.all(opened.splice(0).map((db) => db.destroy()));
  rmSync(directory, { recursive: true });
});

async function open<T>(migrations: readonly Migration[], at = path): Promise<Database<T>> {
  const db = await openDatabase<T>({ path: at, migrations });
  opened.push(db as unknown as Kysely<never>);
  return db;
}

async function pragma(db: Database<NoteTables>, name: string): Promise<unknown> {
  const { rows } = await sql<Record<string, unknown>>`pragma ${sql.raw(name)}`.execute(db);
  return Object.values(rows[0] ?? {})[0];
}

test("keeps a write-ahead log and enforces foreign keys", async () => {
  const db = await open<TagTables>([noteMigration, tagMigration]);
  expect(await pragma(db, "journal_mode")).toBe("wal");
  // NORMAL: the sync is ours, before a commit is acknowledged. What it does is in wal-sync.test.ts.
  expect(await pragma(db, "synchronous")).toBe(1);
  await expect(db.insertInto("tags").values({ seq: undefined, note: 9, name: "x" }).execute()).rejects.toThrow(
    /FOREIGN KEY/,
  );
});

test("makes the file and its folder for the owner only", async () => {
  const nested = join(directory, "state", "policy.db");
  await open([noteMigration], nested);
  const modes = [join(directory, "state"), nested, `${nested}-wal`].map((file) => statSync(file).mode & 0o777);
  expect(modes).toEqual([0o700, 0o600, 0o600]);
});

test("makes every table strict", async () => {
  const db = await open<NoteTables>([noteMigration]);
  const wrong = db.insertInto("notes").values({ id: 1, body: "text" as unknown as Uint8Array });
  await expect(wrong.execute()).rejects.toThrow(/cannot store TEXT value in BLOB column/);
});

test("refuses a column type that PostgreSQL and SQLite do not share", async () => {
  const up: Migration["up"] = (db) => db.schema.createTable("t").addColumn("at", "timestamptz").execute();
  await expect(open([{ name: "0001", up }])).rejects.toThrow("column type timestamptz is not portable");
});

test("takes a migration of another module that sorts before those already run", async () => {
  await (await open([noteMigration])).destroy();
  const db = await open<{ early: { id: number } }>([
    noteMigration,
    { name: "0000_early", up: (d) => d.schema.createTable("early").addColumn("id", "bigint").execute() },
  ]);
  expect(await db.selectFrom("early").selectAll().execute()).toEqual([]);
});

test("refuses two migrations with one name", async () => {
  await expect(open([noteMigration, noteMigration])).rejects.toThrow("two migrations are named 0001_notes");
});

test("reads without waiting for a transaction, and sees only what is committed", async () => {
  const db = await open<NoteTables>([noteMigration]);
  const ids = () => db.selectFrom("notes").select("id").execute();
  await db.transaction().execute(async (trx) => {
    await trx.insertInto("notes").values({ id: 1, body: new Uint8Array() }).execute();
    expect(await ids()).toEqual([]);
    expect(await trx.selectFrom("notes").select("id").execute()).toEqual([{ id: 1 }]);
  });
  expect(await ids()).toEqual([{ id: 1 }]);
});

test("streams rows while other queries run", async () => {
  const db = await open<NoteTables>([noteMigration]);
  for (let id = 0; id < 5; id++) await db.insertInto("notes").values({ id, body: new Uint8Array() }).execute();
  const query = db.selectFrom("notes").select("id").orderBy("id");
  const seen: number[] = [];
  for await (const { id } of query.stream()) {
    seen.push(id);
    expect(await query.execute()).toHaveLength(5);
  }
  expect(seen).toEqual([0, 1, 2, 3, 4]);
});

test("forgets no statement that is still wanted when the cache is full", async () => {
  const db = await open<NoteTables>([noteMigration]);
  await db.insertInto("notes").values({ id: 7, body: new Uint8Array() }).execute();
  for (let n = 0; n < 300; n++) {
    const { rows } = await sql`select id + ${sql.raw(String(n))} as sum from notes`.execute(db);
    expect(rows).toEqual([{ sum: 7 + n }]);
  }
  expect(await db.selectFrom("notes").select("id").execute()).toEqual([{ id: 7 }]);
});
