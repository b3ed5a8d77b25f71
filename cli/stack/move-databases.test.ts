import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type Kysely, sql } from "kysely";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openDatabase } from "../../lib/store/database.ts";
import { FolderInUse } from "../../lib/store/folder-in-use.ts";
import { lockFolder } from "../../lib/store/folder-lock.ts";
import { IncompatibleDatabase } from "../../lib/store/incompatible-database.ts";
import { openSqlite } from "../../lib/store/sqlite-handle.ts";
import { type NoteTables, noteMigration } from "../../lib/store/testdata/notes.ts";
import { UsageError } from "../errors/usage-error.ts";
import { moveIntoOne } from "./move-databases.ts";

interface Counters {
  counters: { name: string; value: number };
}

const counterMigration = {
  name: "0001_counters",
  up: async (db: Kysely<unknown>) => {
    await db.schema
      .createTable("counters")
      .addColumn("name", "text", (column) => column.primaryKey())
      .addColumn("value", "bigint", (column) => column.notNull())
      .execute();
    await sql`insert into counters (name, value) values ('first', 0)`.execute(db);
  },
};

let folder: string;
let path: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-move-"));
  path = join(folder, "one.db");
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const notes = () => ({ path: join(folder, "a", "notes.db"), migrations: [noteMigration] });
const counters = () => ({ path: join(folder, "b", "counters.db"), migrations: [counterMigration] });
const origins = () => [notes(), counters()];
const move = () => moveIntoOne(path, origins());

/** Two databases with rows of their own, closed. */
async function makeOrigins(): Promise<void> {
  const first = await openDatabase<NoteTables>(notes());
  await first
    .insertInto("notes")
    .values({ id: 7, body: new Uint8Array([1, 0, 255]) })
    .execute();
  await first.destroy();
  const second = await openDatabase<Counters>(counters());
  await second.updateTable("counters").set({ value: 41 }).execute();
  await second.insertInto("counters").values({ name: "second", value: 2 }).execute();
  await second.destroy();
}

async function content() {
  const migrations = [noteMigration, counterMigration];
  const db = await openDatabase<NoteTables & Counters>({ path, migrations });
  try {
    return [
      await db.selectFrom("notes").selectAll().execute(),
      await db.selectFrom("counters").selectAll().orderBy("name").execute(),
    ];
  } finally {
    await db.destroy();
  }
}

const EVERYTHING = [
  [{ id: 7, body: new Uint8Array([1, 0, 255]) }],
  [
    { name: "first", value: 41 },
    { name: "second", value: 2 },
  ],
];

const databases = async () =>
  (await readdir(folder, { recursive: true })).filter((name) => /\.db/.test(name)).sort((a, b) => a.localeCompare(b));

const setNote = (value: number) => {
  const db = openSqlite(path);
  db.exec(`pragma user_version = ${value}`);
  db.close();
};

async function copyOf(file: string): Promise<string> {
  const copy = join(folder, "copies", file.replaceAll("/", "_"));
  await mkdir(dirname(copy), { recursive: true });
  await copyFile(file, copy);
  return copy;
}

describe("moving databases into one", () => {
  test("does nothing in a new folder", async () => {
    await move();
    expect(await readdir(folder)).toEqual([]);
  });

  test("takes all rows along, in their owner's sight only, and deletes the origins", async () => {
    await makeOrigins();
    await move();
    expect(await databases()).toEqual(["one.db"]);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    await move();
    expect(await content()).toEqual(EVERYTHING);
  });

  test("takes one along where there is no other", async () => {
    const first = await openDatabase<NoteTables>(notes());
    await first.destroy();
    await move();
    expect(await content()).toEqual([[], [{ name: "first", value: 0 }]]);
  });

  test("begins again where it was killed before the new one was whole", async () => {
    await makeOrigins();
    for (const rest of ["", "-wal", "-journal"]) await writeFile(`${path}.new${rest}`, "half");
    await move();
    expect(await databases()).toEqual(["one.db"]);
    expect(await content()).toEqual(EVERYTHING);
  });

  test.each([
    ["all origins", () => origins()],
    ["one origin", () => [counters()]],
    ["none", () => []],
  ])("goes on where it was killed after the new one was in its place, with %s left", async (_, left) => {
    await makeOrigins();
    const copies = await Promise.all(left().map(async (origin) => [await copyOf(origin.path), origin.path] as const));
    await move();
    setNote(1);
    for (const [copy, origin] of copies) await copyFile(copy, origin);
    for (const [, origin] of copies) await writeFile(`${origin}-wal`, "");
    await rm(join(folder, "copies"), { recursive: true, force: true });
    await move();
    expect(await databases()).toEqual(["one.db"]);
    expect(await content()).toEqual(EVERYTHING);
    // What comes into its place from now on is another one.
    await (await openDatabase<NoteTables>(notes())).destroy();
    await expect(move()).rejects.toThrow(UsageError);
  });

  test("refuses a database beside the one that was not made of it, and touches neither", async () => {
    await makeOrigins();
    await move();
    await makeOrigins();
    const before = await readFile(notes().path);
    const refused = await move().catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(UsageError);
    expect(String(refused)).toContain(`${notes().path} lies beside ${path}`);
    expect(await readFile(notes().path)).toEqual(before);
  });

  test("refuses while a service of its own has an origin's folder", async () => {
    await makeOrigins();
    const lock = lockFolder(join(folder, "b"), { program: "registry", setting: "REEVE_REGISTRY_STATE_DIR" });
    await expect(move()).rejects.toThrow(FolderInUse);
    lock.release();
    await move();
    expect(await content()).toEqual(EVERYTHING);
  });

  test("leaves an origin of an earlier, incompatible version where it is", async () => {
    await makeOrigins();
    const db = openSqlite(counters().path);
    db.exec("update kysely_migration set name = '0001_counters'");
    db.close();
    await expect(move()).rejects.toThrow(IncompatibleDatabase);
    expect(await databases()).toEqual(["a/notes.db", "b/counters.db"]);
  });
});
