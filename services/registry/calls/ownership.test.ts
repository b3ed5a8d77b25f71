import { createSecretKey } from "node:crypto";
import { afterEach, beforeEach, expect, test } from "vitest";
import { CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { createOutbox } from "../../../lib/events/outbox.ts";
import { sealerWith } from "../../../lib/identity/sealer.ts";
import { type Database, openDatabase } from "../../../lib/store/database.ts";
import { createGroupCommit } from "../../../lib/store/group-commit.ts";
import { testCall } from "../../../testkit/test-call.ts";
import { type RegistryTables, registryMigrations } from "../tables.ts";
import { createBodies } from "./bodies.ts";
import { createOwnership, type Ownership } from "./ownership.ts";
import { type CallStore, createCallStore } from "./store.ts";

const bodies = createBodies(sealerWith(createSecretKey(Buffer.alloc(32, 7))));
let db: Database<RegistryTables>;
let a: CallStore & Ownership;
let b: CallStore & Ownership;
beforeEach(async () => {
  db = await openDatabase<RegistryTables>({ path: ":memory:", migrations: registryMigrations });
  const writes = createGroupCommit(db);
  const replica = (id: string) => ({
    ...createCallStore({ db, writes, outbox: createOutbox(db, "registry_outbox"), bodies, owner: id }),
    ...createOwnership(db, writes, id, bodies),
  });
  a = replica("rep-a");
  b = replica("rep-b");
});
afterEach(() => db.destroy());

const call = (id: string, state: CallState = CallState.RECEIVED) => testCall({ id, state });
const ended = (id: string) => call(id, CallState.SUCCEEDED);
const args = Buffer.from("{}");

test("each call that is claimed goes to one, however many try", async () => {
  for (const id of ["1", "2", "3"]) await a.insert(call(id), { args });
  const results = await Promise.all([b.claim(["rep-a"]), b.claim(["rep-a"])]);
  const ids = results.map(({ calls }) => calls.map(({ call: { id } }) => id));
  expect(ids).toEqual([["1", "2", "3"], []]);
  expect(await b.mine()).toEqual(["1", "2", "3"]);
  expect(await a.isMine("1")).toBe(false);
});

test("what has ended is not claimed, but for an outcome that the audit log does not have", async () => {
  await a.insert(call("recorded"), { args });
  await a.finish(ended("recorded"), undefined, []);
  await a.insert(call("untold"), { args });
  await a.finish(ended("untold"), Buffer.from("outcome"), []);
  expect(await b.owners()).toEqual(["rep-a"]);
  const { calls, outcomes } = await b.claim(["rep-a"]);
  expect(calls).toEqual([]);
  expect(outcomes.map(({ callId, outcome }) => [callId, Buffer.from(outcome).toString()])).toEqual([
    ["untold", "outcome"],
  ]);
  expect((await b.myOutcomes()).map(({ callId }) => callId)).toEqual(["untold"]);
});

test("a replica that has lost a call cannot write to it, and does not write its end a second time", async () => {
  await a.insert(call("c"), { args });
  await b.claim(["rep-a"]);
  expect(await a.save(call("c", CallState.HELD))).toBe(false);
  expect(await a.finish(ended("c"), Buffer.from("a"), [])).toBe(false);
  expect(await b.finish(call("c", CallState.CANCELED), Buffer.from("b"), [])).toBe(true);
  expect(await b.finish(ended("c"), Buffer.from("b again"), [])).toBe(false);
  const stored = await a.get("c");
  expect(stored?.call.status.state).toBe(CallState.CANCELED);
  expect((await b.myOutcomes()).map(({ outcome }) => Buffer.from(outcome).toString())).toEqual(["b"]);
});

test("what is released belongs to the first that claims it", async () => {
  await a.insert(call("c"), { args });
  await a.release();
  expect(await b.owners()).toEqual([""]);
  expect((await b.claim([""])).calls).toHaveLength(1);
  expect(await a.claim([""])).toEqual({ calls: [], outcomes: [] });
});

test("a request to cancel goes with the call to its next owner", async () => {
  await a.insert(call("c"), { args });
  await b.wantCancel("c");
  expect(await a.wantedCancels()).toEqual(["c"]);
  expect((await b.claim(["rep-a"])).calls).toMatchObject([{ cancelWanted: true }]);
  expect(await a.wantedCancels()).toEqual([]);
  await b.finish(ended("c"), undefined, []);
  await a.wantCancel("c");
  expect(await b.wantedCancels()).toEqual([]);
});
