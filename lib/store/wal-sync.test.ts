import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Kysely } from "kysely";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openDatabase } from "./database.ts";
import { createGroupCommit } from "./group-commit.ts";
import { createWalSync } from "./wal-sync.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-wal-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

interface Tables {
  notes: { id: number };
}
const migrations = [
  { name: "0001", up: (db: Kysely<unknown>) => db.schema.createTable("notes").addColumn("id", "integer").execute() },
];

test("what is acknowledged is in the log on disk by then", async () => {
  const path = join(folder, "a.db");
  const db = await openDatabase<Tables>({ path, migrations });
  const writes = createGroupCommit(db);
  const before = (await readFile(`${path}-wal`)).length;
  await writes.write((trx) => trx.insertInto("notes").values({ id: 1 }).execute());
  expect((await readFile(`${path}-wal`)).length).toBeGreaterThan(before);
  await writes.close();
  await db.destroy();
});

test("a sync that was asked for during another one is a later one", async () => {
  const wal = createWalSync(process.execPath);
  const first = wal.sync();
  const second = wal.sync();
  const third = wal.sync();
  expect(second).not.toBe(first);
  expect(third).toBe(second);
  await Promise.all([first, second, third]);
  await wal.close();
});

test("after a sync that failed nothing is acknowledged any more", async () => {
  const wal = createWalSync(join(folder, "missing-wal"));
  await expect(wal.sync()).rejects.toThrow("what is on disk is not known");
  expect(() => wal.syncInPlace()).toThrow("what is on disk is not known");
  await wal.close();
});
