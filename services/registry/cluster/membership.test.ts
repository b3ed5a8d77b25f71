import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { createLogger } from "../../../lib/log/log.ts";
import { type Database, openDatabase } from "../../../lib/store/database.ts";
import { eventually } from "../../../testkit/eventually.ts";
import { type PostgresServer, startPostgresServer } from "../../../testkit/postgres-server.ts";
import { type RegistryTables, registryMigrations } from "../tables.ts";
import { joinCluster, type Membership } from "./membership.ts";

let postgres: PostgresServer;
let db: Database<RegistryTables>;
const joined: Membership[] = [];
beforeAll(async () => {
  postgres = await startPostgresServer();
});
afterAll(() => postgres?.close());
beforeEach(async () => {
  db = await openDatabase<RegistryTables>({ url: await postgres.newDatabase(), migrations: registryMigrations });
});
afterEach(async () => {
  await Promise.all(joined.splice(0).map((one) => one.close()));
  await db.destroy();
});

const logger = createLogger({ service: "test", level: "silent" });
const TTL_MS = 2500;

async function join(self: string, on = db): Promise<Membership> {
  const one = await joinCluster({ db: on, self, logger, ttlMs: TTL_MS, renewMs: 150, now: Date.now });
  joined.push(one);
  return one;
}

/** Writes a replica's lease once and never again: as one that is killed. */
async function leaseOf(id: string): Promise<void> {
  const { expires_ms } = await db.selectFrom("replicas").select("expires_ms").executeTakeFirstOrThrow();
  await db.insertInto("replicas").values({ id, started_ms: 0, expires_ms }).execute();
}

test("replicas see each other come and leave", async () => {
  const a = await join("rep-a");
  const b = await join("rep-b");
  expect(b.others()).toEqual(["rep-a"]);
  await eventually(() => expect(a.others()).toEqual(["rep-b"]));
  expect([a.isGone("rep-b"), a.isAlive("rep-a"), a.isGone("rep-a")]).toEqual([false, true, false]);
  await b.close();
  await eventually(() => expect(a.isGone("rep-b")).toBe(true));
  expect(a.others()).toEqual([]);
});

test("one that is killed is not alive when its lease is over, and gone for those who have watched it run out", async () => {
  const a = await join("rep-a");
  const changes: string[][] = [];
  a.onChange(() => changes.push(a.others()));
  await leaseOf("rep-x");
  await a.look();
  expect([a.isAlive("rep-x"), a.isGone("rep-x")]).toEqual([true, false]);
  await eventually(() => expect(a.isGone("rep-x")).toBe(true));
  expect(a.isAlive("rep-x")).toBe(false);
  expect(changes).toEqual([["rep-x"], []]);
  // A replica that joins now cannot know whether the others had a chance.
  const late = await join("rep-late");
  expect([late.isAlive("rep-x"), late.isGone("rep-x")]).toEqual([false, false]);
  await eventually(() => expect(late.isGone("rep-x")).toBe(true));
});

test("one whose lease ran out between two looks, and that is back by the next, is reported", async () => {
  // It looks only when it is asked to.
  const a = await joinCluster({ db, self: "rep-a", logger, ttlMs: TTL_MS, renewMs: 3_600_000, now: Date.now });
  joined.push(a);
  await leaseOf("rep-x");
  await a.look();
  const changes: string[][] = [];
  a.onChange(() => changes.push(a.others()));
  await eventually(() => expect(a.isAlive("rep-x")).toBe(false));
  await db
    .updateTable("replicas")
    .set({ expires_ms: Date.now() + 60_000 })
    .where("id", "=", "rep-x")
    .execute();
  await a.look();
  expect(changes).toEqual([["rep-x"]]);
  await a.look();
  expect(changes).toHaveLength(1);
});

test("no replica is gone that could not renew its lease because the database was unavailable", async () => {
  const [a, b] = [await join("rep-a"), await join("rep-b")];
  await eventually(() => expect(a.others()).toEqual(["rep-b"]));
  await postgres.kill();
  await eventually(() => expect(a.isAlive("rep-b")).toBe(false));
  const gone: boolean[] = [];
  await postgres.restart();
  await eventually(() => {
    gone.push(a.isGone("rep-b"), b.isGone("rep-a"));
    expect([a.others(), b.others()]).toEqual([["rep-b"], ["rep-a"]]);
  });
  expect(gone).not.toContain(true);
});

test("a file is one process's own: the one that opens it finds the others gone", async () => {
  const file = await openDatabase<RegistryTables>({ path: ":memory:", migrations: registryMigrations });
  await file
    .insertInto("replicas")
    .values({ id: "rep-old", started_ms: 0, expires_ms: Date.now() + 60_000 })
    .execute();
  const one = await joinCluster({ db: file, self: "rep-a", logger, ttlMs: TTL_MS, renewMs: 150, now: Date.now });
  expect([one.isAlive("rep-old"), one.isGone("rep-old")]).toEqual([false, true]);
  await one.close();
  await file.destroy();
});
