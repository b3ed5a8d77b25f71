import { createSecretKey } from "node:crypto";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "kysely";
import { afterEach, beforeEach, expect, test } from "vitest";
import { SealError } from "../../../lib/identity/seal.ts";
import { sealerWith } from "../../../lib/identity/sealer.ts";
import { openDatabase } from "../../../lib/store/database.ts";
import { type ExecutionEnd, type Ledger, type NewExecution, openLedger } from "./ledger.ts";
import { keepRetention } from "./retention.ts";
import { ledgerMigrations } from "./schema.ts";

const SEALER = sealerWith(createSecretKey(Buffer.alloc(32, 1)));

let folder: string;
let ledger: Ledger;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-ledger-"));
  ledger = await openLedger(join(folder, "ledger.db"), SEALER);
});

afterEach(async () => {
  await ledger.close();
  await rm(folder, { recursive: true });
});

const call: NewExecution = { callId: "call-1", grantId: "grant-1", tool: "exec", argsDigest: "digest" };

function end(callId: string, changes: Partial<ExecutionEnd> = {}): ExecutionEnd {
  return { callId, state: "finished", outcome: 1, reason: 0, endMs: 2000, finished: Buffer.from("end"), ...changes };
}

test("holds what was begun, and then its end", async () => {
  expect(await ledger.begin(call, 1000)).toEqual({ kind: "taken" });
  expect(await ledger.find("call-1")).toEqual({ ...call, state: "started", startMs: 1000, finished: undefined });
  expect(await ledger.finish(end("call-1"))).toBe(true);
  const known = await ledger.find("call-1");
  expect(known).toMatchObject({ ...call, state: "finished", startMs: 1000 });
  expect(Buffer.from(known?.finished ?? "")).toEqual(Buffer.from("end"));
});

test("knows nothing of a call it never took on", async () => {
  expect(await ledger.find("call-1")).toBeUndefined();
  expect(await ledger.finish(end("call-1"))).toBe(false);
});

test("does not begin a known call again", async () => {
  await ledger.begin(call, 1000);
  expect(await ledger.begin({ ...call, grantId: "grant-2" }, 1001)).toMatchObject({
    kind: "known",
    execution: { grantId: "grant-1", startMs: 1000 },
  });
});

test("does not begin another call with a used grant", async () => {
  await ledger.begin(call, 1000);
  expect(await ledger.begin({ ...call, callId: "call-2" }, 1001)).toEqual({ kind: "replayed" });
  expect(await ledger.find("call-2")).toBeUndefined();
});

test("lets only one of two calls that come at once use a grant", async () => {
  const results = await Promise.all(["call-1", "call-2"].map((callId) => ledger.begin({ ...call, callId }, 1000)));
  expect(results).toEqual([{ kind: "taken" }, { kind: "replayed" }]);
});

test("knows used grants after it was opened again", async () => {
  await ledger.begin(call, 1000);
  await ledger.close();
  ledger = await openLedger(join(folder, "ledger.db"), SEALER);
  expect(await ledger.begin({ ...call, callId: "call-2" }, 1001)).toEqual({ kind: "replayed" });
});

test("keeps the first end of a call", async () => {
  await ledger.begin(call, 1000);
  await ledger.finish(end("call-1"));
  expect(await ledger.finish(end("call-1", { finished: Buffer.from("other") }))).toBe(false);
  expect(Buffer.from((await ledger.find("call-1"))?.finished ?? "")).toEqual(Buffer.from("end"));
});

test("records calls that never ran, with and without a grant", async () => {
  const tombstone = { ...call, callId: "call-2", grantId: undefined };
  expect(await ledger.record(call, end("call-1", { state: "refused" }))).toEqual({ kind: "taken" });
  expect(await ledger.record(tombstone, end("call-2", { state: "not_started" }))).toEqual({ kind: "taken" });
  expect(await ledger.begin(call, 1000)).toMatchObject({ kind: "known", execution: { state: "refused" } });
  expect(await ledger.begin({ ...call, callId: "call-2", grantId: "grant-2" }, 1000)).toMatchObject({
    kind: "known",
    execution: { state: "not_started", grantId: undefined, startMs: undefined },
  });
});

test("names the calls that have no end", async () => {
  await ledger.begin(call, 1000);
  await ledger.begin({ ...call, callId: "call-2", grantId: "grant-2" }, 1000);
  await ledger.finish(end("call-1"));
  expect((await ledger.unended()).map(({ callId }) => callId)).toEqual(["call-2"]);
});

test("names them also where more ends than it notes came before and after", async () => {
  const run = async (from: number, to: number) => {
    for (let n = from; n < to; n++) {
      const callId = `call-${n}`;
      await ledger.begin({ ...call, callId, grantId: `grant-${n}` }, 1000);
      if (n !== 300) await ledger.finish(end(callId));
    }
  };
  await run(0, 600);
  await ledger.close();
  ledger = await openLedger(join(folder, "ledger.db"), SEALER);
  expect((await ledger.unended()).map(({ callId }) => callId)).toEqual(["call-300"]);
  await run(600, 1200);
  await ledger.close();
  ledger = await openLedger(join(folder, "ledger.db"), SEALER);
  expect((await ledger.unended()).map(({ callId }) => callId)).toEqual(["call-300"]);
  expect(await ledger.finish(end("call-300"))).toBe(true);
  expect(await ledger.unended()).toEqual([]);
});

test("takes calls on after all were forgotten and it was opened again", async () => {
  for (let n = 0; n < 600; n++) await ledger.begin({ ...call, callId: `old-${n}`, grantId: `g-${n}` }, 1000);
  for (let n = 0; n < 600; n++) await ledger.finish(end(`old-${n}`));
  expect(await ledger.prune(5000)).toBe(600);
  await ledger.close();
  ledger = await openLedger(join(folder, "ledger.db"), SEALER);
  await ledger.begin(call, 6000);
  expect((await ledger.unended()).map(({ callId }) => callId)).toEqual(["call-1"]);
  expect(await ledger.finish(end("call-1"))).toBe(true);
});

test("keeps what a ledger of before holds, with its ends", async () => {
  const path = join(folder, "before.db");
  const db = await openDatabase<Record<string, never>>({ path, migrations: ledgerMigrations.slice(0, 1) });
  const sealed = SEALER.seal("ledger/call-2", Buffer.from("end"));
  await sql`insert into executions (call_id, grant_id, tool, args_digest, state, outcome, reason, start_ms, end_ms, finished)
    values ('call-1', 'grant-1', 'exec', 'digest', 'started', null, null, 1000, null, null),
      ('call-2', 'grant-2', 'exec', 'digest', 'finished', 1, 0, 1000, 2000, ${sealed})`.execute(db);
  await db.destroy();
  await ledger.close();
  ledger = await openLedger(path, SEALER);
  expect((await ledger.unended()).map(({ callId }) => callId)).toEqual(["call-1"]);
  const ended = await ledger.find("call-2");
  expect(ended).toMatchObject({ state: "finished", grantId: "grant-2", startMs: 1000 });
  expect(Buffer.from(ended?.finished ?? "").toString()).toBe("end");
  expect(await ledger.begin({ ...call, callId: "call-3", grantId: "grant-2" }, 3000)).toEqual({ kind: "replayed" });
  expect(await ledger.finish(end("call-1"))).toBe(true);
});

test("forgets calls that ended long ago, and none that runs", async () => {
  for (let n = 0; n < 1100; n++)
    void ledger.record({ ...call, callId: `old-${n}`, grantId: `g-${n}` }, end(`old-${n}`));
  await ledger.begin(call, 1000);
  await ledger.record({ ...call, callId: "new", grantId: "g-new" }, end("new", { endMs: 5000 }));
  expect(await ledger.prune(5000)).toBe(1100);
  expect(await ledger.find("old-1099")).toBeUndefined();
  expect(await ledger.find("new")).toBeDefined();
  expect(await ledger.find("call-1")).toBeDefined();
});

test("retention never forgets what ended within the hour, however it is set", () => {
  const asked: number[] = [];
  const prune = (beforeMs: number) => Promise.resolve(asked.push(beforeMs));
  keepRetention(
    { prune },
    1,
    () => 10_000_000,
    () => undefined,
  ).stop();
  keepRetention(
    { prune },
    7_200_000,
    () => 10_000_000,
    () => undefined,
  ).stop();
  expect(asked).toEqual([6_400_000, 2_800_000]);
});

async function folderHolds(text: string): Promise<string[]> {
  const holds: string[] = [];
  for (const name of await readdir(folder)) if ((await readFile(join(folder, name))).includes(text)) holds.push(name);
  return holds;
}

test("holds no output in clear, in its file or its log", async () => {
  await ledger.begin(call, 1000);
  await ledger.finish(end("call-1", { finished: Buffer.from("printed by a tool") }));
  await ledger.record(
    { ...call, callId: "call-2", grantId: "g-2" },
    end("call-2", { finished: Buffer.from("printed by another") }),
  );
  expect(await folderHolds("printed by")).toEqual([]);
  expect(Buffer.from((await ledger.find("call-2"))?.finished ?? "").toString()).toBe("printed by another");
});

test("does not open with another key", async () => {
  await ledger.record(call, end("call-1"));
  const other = openLedger(join(folder, "ledger.db"), sealerWith(createSecretKey(Buffer.alloc(32, 2))));
  await expect(other).rejects.toThrow(SealError);
});
