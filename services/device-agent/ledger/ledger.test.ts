import { createSecretKey } from "node:crypto";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { SealError } from "../../../lib/identity/seal.ts";
import { sealerWith } from "../../../lib/identity/sealer.ts";
import { type ExecutionEnd, type Ledger, type NewExecution, openLedger } from "./ledger.ts";
import { keepRetention } from "./retention.ts";

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
