import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { sql } from "kysely";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type Database, openDatabase, sqliteWriterOf } from "./database.ts";
import { createGroupCommit, type GroupCommit } from "./group-commit.ts";
import type { RowKind } from "./rows.ts";
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

describe("a row that rides along", () => {
  // Its clock stands still, however long the machine takes.
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
  afterEach(() => void vi.useRealTimers());

  const kind: RowKind<NoteTables, number, number> = {
    key: String,
    bytes: () => 0,
    one: async (trx, id) => {
      await trx.insertInto("notes").values({ id, body: new Uint8Array() }).execute();
      return id;
    },
    many: () => Promise.reject(new Error("SQLite writes row by row")),
  };
  const never = new Promise<void>(() => {});
  const turns = async () => {
    for (let i = 0; i < 10; i++) await new Promise(setImmediate);
  };
  const spies = () => {
    const writer = sqliteWriterOf(db);
    if (writer?.wal === undefined) throw new Error("the database is not in a file");
    return { transact: vi.spyOn(writer, "transact"), inPlace: vi.spyOn(writer.wal, "syncInPlace") };
  };

  test("waits for another write, and shares its commit and its sync", async () => {
    const { transact, inPlace } = spies();
    const riding = writes.writeRowAlong(kind, 1, never);
    await turns();
    expect(await ids()).toEqual([]);
    expect(await Promise.all([riding, insert(2)])).toEqual([1, 2]);
    expect([transact.mock.calls.length, inPlace.mock.calls.length]).toEqual([1, 1]);
  });

  test("is in the commit of what follows it, or in one before", async () => {
    const riding = writes.writeRowAlong(kind, 1, never);
    const seen = writes.write((trx) => trx.selectFrom("notes").select("id").execute());
    expect(await seen).toEqual([{ id: 1 }]);
    expect(await riding).toBe(1);
  });

  test("waits for its own write while a batch of others runs", async () => {
    const { transact } = spies();
    let riding: Promise<number> | undefined;
    await writes.write(async () => {
      riding = writes.writeRowAlong(kind, 1, never);
    });
    await turns();
    expect(await ids()).toEqual([]);
    expect(await Promise.all([riding, insert(2)])).toEqual([1, 2]);
    expect(transact).toHaveBeenCalledTimes(2);
  });

  test("waits no longer where that is found out while a batch of others runs", async () => {
    let riding: Promise<number> | undefined;
    await writes.write(async () => {
      riding = writes.writeRowAlong(kind, 1, Promise.resolve());
    });
    expect(await riding).toBe(1);
  });

  test.each([
    ["was done without a write", () => Promise.resolve()],
    ["has failed", () => Promise.reject(new Error("no decision"))],
  ])("is written at once where what it waits for %s", async (_, until) => {
    expect(await writes.writeRowAlong(kind, 1, until())).toBe(1);
    expect(await ids()).toEqual([1]);
  });

  test("is written after 50 ms where nothing comes", async () => {
    const riding = writes.writeRowAlong(kind, 1, never);
    vi.advanceTimersByTime(49);
    await turns();
    expect(await ids()).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(await riding).toBe(1);
  });

  test("rejects alone where it cannot be written", async () => {
    await insert(1);
    const riding = writes.writeRowAlong(kind, 1, never);
    const [failed, other] = await Promise.allSettled([riding, insert(2)]);
    expect([failed.status, other.status]).toEqual(["rejected", "fulfilled"]);
    expect(await ids()).toEqual([1, 2]);
  });

  test("is written when the group commit closes, and refused after that", async () => {
    const riding = writes.writeRowAlong(kind, 1, never);
    await writes.close();
    expect(await riding).toBe(1);
    await expect(writes.writeRowAlong(kind, 2, never)).rejects.toThrow("closed");
  });

  test("does not make others wait that are not alone", async () => {
    const { inPlace } = spies();
    await Promise.all([writes.writeRowAlong(kind, 1, never), writes.writeRowAlong(kind, 2, never), insert(3)]);
    expect(inPlace).not.toHaveBeenCalled();
  });
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
