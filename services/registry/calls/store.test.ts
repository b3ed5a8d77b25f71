import { createSecretKey } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { JsonObject } from "@bufbuild/protobuf";
import { afterEach, beforeEach, expect, test } from "vitest";
import { CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { createOutbox } from "../../../lib/events/outbox.ts";
import { sealerWith } from "../../../lib/identity/sealer.ts";
import { type Database, openDatabase } from "../../../lib/store/database.ts";
import { createGroupCommit } from "../../../lib/store/group-commit.ts";
import { testCall } from "../../../testkit/test-call.ts";
import { type RegistryTables, registryMigrations } from "../tables.ts";
import { createBodies } from "./bodies.ts";
import { type CallStore, createCallStore } from "./store.ts";

let folder: string;
const bodies = createBodies(sealerWith(createSecretKey(Buffer.alloc(32, 7))));
let db: Database<RegistryTables>;
let store: CallStore;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-calls-"));
  db = await openDatabase<RegistryTables>({ path: join(folder, "registry.db"), migrations: registryMigrations });
  store = createCallStore({ db, writes: createGroupCommit(db), outbox: createOutbox(db), bodies });
});
afterEach(async () => {
  await db.destroy();
  await rm(folder, { recursive: true });
});

test("keeps a call's output, and leaves it out of lists", async () => {
  const output: JsonObject = { stdout: "é\u0000\ud800", list: [1, null, { deep: true }] };
  const call = testCall({ id: "c", tool: "exec", state: CallState.RECEIVED });
  await store.insert(call, { args: Buffer.from("{}") });
  await store.finish(testCall({ id: "c", tool: "exec", state: CallState.SUCCEEDED, output }), undefined, []);
  const whole = (await store.get("c"))?.call;
  expect(whole).toMatchObject({ id: "c", spec: { tool: "exec" }, status: { state: CallState.SUCCEEDED, output } });
  const [listed] = (await store.list({ limit: 10 })).calls;
  expect(listed?.call).toMatchObject({ id: "c", spec: { tool: "exec" }, status: { state: CallState.SUCCEEDED } });
  expect(listed?.call.status.output).toBeUndefined();
});

test("has no output for a call that ended without one", async () => {
  const call = testCall({ id: "c", state: CallState.RECEIVED });
  await store.insert(call, { args: Buffer.from("{}") });
  await store.finish(testCall({ id: "c", state: CallState.DENIED }), undefined, []);
  expect((await store.get("c"))?.call.status.output).toBeUndefined();
});
