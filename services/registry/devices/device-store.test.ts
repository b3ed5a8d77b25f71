import { sql } from "kysely";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { LinkMode } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import { type Database, openDatabase } from "../../../lib/store/database.ts";
import { createGroupCommit } from "../../../lib/store/group-commit.ts";
import { startPostgresServer } from "../../../testkit/postgres-server.ts";
import { type RegistryTables, registryMigrations } from "../tables.ts";
import { createDeviceStore, type DeviceClaim, type DeviceStore } from "./device-store.ts";

let db: Database<RegistryTables>;
let a: DeviceStore;
let b: DeviceStore;
beforeEach(async () => {
  db = await openDatabase<RegistryTables>({ path: ":memory:", migrations: registryMigrations });
  const writes = createGroupCommit(db);
  a = createDeviceStore(db, writes, "rep-a", () => 1000);
  b = createDeviceStore(db, writes, "rep-b", () => 2000);
});
afterEach(() => db.destroy());

const nas: DeviceClaim = {
  name: "nas",
  id: "dev-1",
  publicKey: new Uint8Array([1]),
  manifest: new Uint8Array([2]),
  linkMode: LinkMode.ATTACH,
  attachCount: 1,
};

async function taken(store: DeviceStore, device: DeviceClaim) {
  const result = await store.take(device);
  if (result.kind !== "taken") throw new Error(result.kind);
  return result.row;
}

test("a device belongs to the replica that took its stream last, and each stream has a higher epoch", async () => {
  expect(await taken(a, nas)).toMatchObject({ replica_id: "rep-a", epoch: 1, attach_count: 1 });
  expect(await taken(b, { ...nas, attachCount: 2 })).toMatchObject({ replica_id: "rep-b", epoch: 2, attach_count: 2 });
});

test("an older stream that ends does not take the device from its newer one", async () => {
  const older = await taken(a, nas);
  const newer = await taken(a, { ...nas, attachCount: 2 });
  await a.release("dev-1", older.epoch);
  expect((await a.since(-1))[0]).toMatchObject({ replica_id: "rep-a", epoch: newer.epoch });
  await b.release("dev-1", newer.epoch);
  expect((await a.since(-1))[0]?.replica_id).toBe("rep-a");
  await a.release("dev-1", newer.epoch);
  expect((await a.since(-1))[0]?.replica_id).toBe("");
});

test.each([1, 0])(
  "a device that has dialed twice shows a number that was used %i times less: it was copied",
  async (less) => {
    await taken(a, { ...nas, attachCount: 5 });
    expect(await b.take({ ...nas, attachCount: 5 - less })).toEqual({ kind: "low" });
  },
);

test("a device that is dialed counts nothing, and keeps the count of when it dialed itself", async () => {
  await taken(a, { ...nas, attachCount: 5 });
  expect(await taken(b, { ...nas, attachCount: 0, linkMode: LinkMode.DIRECT })).toMatchObject({ attach_count: 5 });
});

test("a name belongs to its first key until the device is removed", async () => {
  const other = { ...nas, id: "dev-2", publicKey: new Uint8Array([9]) };
  await taken(a, nas);
  expect(await b.take(other)).toEqual({ kind: "other_key" });
  await a.remove("dev-1");
  expect(await taken(b, other)).toMatchObject({ id: "dev-2", removed: 0, attach_count: 1, epoch: 2 });
});

test("a device that goes by another name leaves its old one", async () => {
  await taken(a, nas);
  await taken(a, { ...nas, name: "box", attachCount: 2 });
  const rows = await a.since(-1);
  expect(rows.map(({ name, removed }) => [name, removed])).toEqual([
    ["box", 0],
    ["nas", 1],
  ]);
});

test("every change has a number of its own, and since returns the newer ones in order", async () => {
  const first = await taken(a, nas);
  const second = await taken(a, { ...nas, name: "box", id: "dev-2" });
  expect(second.change).toBe(first.change + 1);
  await b.recheck("dev-1");
  const rows = await a.since(first.change);
  expect(rows.map(({ name, checks }) => [name, checks])).toEqual([
    ["box", 0],
    ["nas", 1],
  ]);
});

test("a replica that leaves gives up all it held, and nothing of another's", async () => {
  await taken(a, nas);
  await taken(b, { ...nas, name: "box", id: "dev-2" });
  await a.releaseAll();
  const rows = await a.since(-1);
  expect(Object.fromEntries(rows.map(({ name, replica_id }) => [name, replica_id]))).toEqual({ nas: "", box: "rep-b" });
});

test("a device that the guard refuses is not taken", async () => {
  const error = new Error("locked");
  expect(await a.take(nas, async () => error)).toEqual({ kind: "refused", error });
  expect(await a.since(-1)).toEqual([]);
});

test("a removed device counts its dials anew", async () => {
  await taken(a, { ...nas, attachCount: 9 });
  await a.remove("dev-1");
  expect(await taken(a, { ...nas, attachCount: 1 })).toMatchObject({ attach_count: 1, removed: 0 });
});

describe.each(["sqlite", "postgres"])("on %s", (dialect) => {
  test("a row that cannot be read is left out, and said once", async () => {
    await using parts = new AsyncDisposableStack();
    const postgres =
      dialect === "postgres" ? parts.adopt(await startPostgresServer(), (one) => one.close()) : undefined;
    const place = postgres === undefined ? { path: ":memory:" } : { url: await postgres.newDatabase() };
    const migrations = registryMigrations;
    const own = parts.adopt(await openDatabase<RegistryTables>({ ...place, migrations }), (one) => one.destroy());
    const unreadable: string[] = [];
    const store = createDeviceStore(own, createGroupCommit(own), "rep-a", Date.now, (name) => unreadable.push(name));
    await store.take(nas);
    await store.take({ ...nas, name: "box", id: "dev-2" });
    await own
      .updateTable("devices")
      .set({ attach_count: sql<number>`9007199254740994` })
      .where("name", "=", "nas")
      .execute();
    for (let look = 0; look < 2; look++) expect((await store.since(-1)).map(({ name }) => name)).toEqual(["box"]);
    expect(unreadable).toEqual(["nas"]);
    await store.remove("dev-1");
    expect((await store.since(-1)).map(({ name, removed }) => [name, removed])).toEqual([
      ["box", 0],
      ["nas", 1],
    ]);
  });
});
