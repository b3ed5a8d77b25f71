import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { sql } from "kysely";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Database, openDatabase } from "./database.ts";
import { createGroupCommit, type GroupCommit } from "./group-commit.ts";
import { type NoteTables, noteMigration } from "./testdata/notes.ts";

let directory: string;
let path: string;
let db: Database<NoteTables>;
let writes: GroupCommit<NoteTables>;

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "reeve-store-"));
  path = join(directory, "state.db");
  db = await openDatabase<NoteTables>({ path, migrations: [noteMigration] });
  writes = createGroupCommit(db);
});

afterEach(async () => {
  await writes.close();
  await db.destroy();
  rmSync(directory, { recursive: true });
});

function insert(id: number, body = new Uint8Array()): Promise<number> {
  return writes.write(async (trx) => {
    await trx.insertInto("notes").values({ id, body }).execute();
    return id;
  });
}

async function ids(): Promise<number[]> {
  const rows = await db.selectFrom("notes").select("id").orderBy("id").execute();
  return rows.map((row) => row.id);
}

test("rolls a failing job back when it is alone", async () => {
  const failing = writes.write(async (trx) => {
    await trx.insertInto("notes").values({ id: 50, body: new Uint8Array() }).execute();
    throw new Error("changed my mind");
  });
  await expect(failing).rejects.toThrow("changed my mind");
  expect(await ids()).toEqual([]);
});

test("rejects the job that keeps a commit from going through, and no other", async () => {
  await sql`create table owed (note integer references notes (id) deferrable initially deferred) strict`.execute(db);
  const breaking = writes.write((trx) => sql`insert into owed values (404)`.execute(trx));
  const results = await Promise.allSettled([insert(1), breaking, insert(2)]);
  expect(results.map((result) => result.status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(await ids()).toEqual([1, 2]);
  await insert(3);
  expect(await ids()).toEqual([1, 2, 3]);
});

test("rejects when the disk is full, and writes again when there is room", async () => {
  await insert(1);
  await sql`pragma max_page_count = 10`.execute(db);
  const big = () => insert(2, new Uint8Array(200_000));
  const results = await Promise.allSettled([insert(3), big(), insert(4)]);
  const full = { status: "rejected", reason: expect.objectContaining({ message: "database or disk is full" }) };
  expect(results).toMatchObject([{ status: "fulfilled" }, full, { status: "fulfilled" }]);
  await expect(big()).rejects.toThrow("database or disk is full");
  await sql`pragma max_page_count = 100000`.execute(db);
  await big();
  expect(await ids()).toEqual([1, 2, 3, 4]);
});

test("commits nothing of a job that goes on after the disk was full", async () => {
  await sql`pragma max_page_count = 10`.execute(db);
  const stubborn = writes.write(async (trx) => {
    await trx
      .insertInto("notes")
      .values({ id: 1, body: new Uint8Array(200_000) })
      .execute()
      .catch(() => {});
    await trx.insertInto("notes").values({ id: 2, body: new Uint8Array() }).execute();
  });
  await expect(stubborn).rejects.toThrow("rolled the transaction back");
  expect(await ids()).toEqual([]);
});

test("waits its turn behind transactions that others opened on the same database", async () => {
  const outside = db.transaction().execute(async (trx) => {
    await new Promise(setImmediate);
    await trx.insertInto("notes").values({ id: 1, body: new Uint8Array() }).execute();
  });
  await Promise.all([outside, insert(2), db.insertInto("notes").values({ id: 3, body: new Uint8Array() }).execute()]);
  expect(await ids()).toEqual([1, 2, 3]);
});

test("loses no acknowledged row when the process is killed", { timeout: 60_000 }, async () => {
  const acknowledged: number[] = [];
  for (let kill = 0; kill < 5; kill++) {
    acknowledged.push(...(await writeUntilKilled(kill * 1_000_000, 200 + kill * 37)));
  }
  const stored = new Set(await ids());
  expect(acknowledged.length).toBeGreaterThan(1000);
  expect(acknowledged.filter((id) => !stored.has(id))).toEqual([]);
});

/** Runs a writing process, kills it after so many acknowledgements, and resolves with all that it acknowledged. */
async function writeUntilKilled(firstId: number, afterAcks: number): Promise<number[]> {
  const script = join(import.meta.dirname, "testdata", "crash-writer.ts");
  const child: ChildProcess = spawn(process.execPath, [script, path, String(firstId)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  if (!child.stdout) throw new Error("no stdout");
  const exited = once(child, "exit");
  const acks: number[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    acks.push(Number(line));
    if (acks.length === afterAcks) child.kill("SIGKILL");
  }
  await exited;
  return acks;
}
