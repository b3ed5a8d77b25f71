import { createSecretKey } from "node:crypto";
import { appendFile, mkdtemp, readdir, readFile, rm, stat, truncate, utimes } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import {
  type LedgerOutput,
  OutputKept,
  OutputStream,
} from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { sealerWith } from "../../../lib/identity/sealer.ts";
import { eventually } from "../../../testkit/eventually.ts";
import { MAX_CHUNK_BYTES, type ReadRange } from "./chunk-source.ts";
import { type OutputLimits, openOutputFolder } from "./output-folder.ts";
import { createOutputs, type OutputPart, type Outputs } from "./outputs.ts";

const SEALER = sealerWith(createSecretKey(Buffer.alloc(32, 1)));
const MIB = 1024 * 1024;
const ALL: ReadRange = { from: 0, maxBytes: 64 * MIB, contextBytes: 0 };

let folder: string;
let errors: unknown[];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-output-"));
  errors = [];
});
afterEach(() => rm(folder, { recursive: true, force: true }));

function open(limits: Partial<OutputLimits> = {}): Outputs {
  const onError = (error: unknown): void => void errors.push(error);
  const all = { callBytes: 16 * MIB, totalBytes: 16 * MIB, ageMs: 60_000, ...limits };
  return createOutputs(openOutputFolder(folder, all, { now: Date.now, onError }), SEALER, onError);
}

const silent = { isFollowed: () => false, onChunk: () => undefined };

/** Has a call print and end. */
async function printed(outputs: Outputs, callId: string, texts: readonly string[]): Promise<LedgerOutput> {
  const recorder = outputs.record(callId, silent);
  for (const text of texts) await recorder.push(OutputStream.STDOUT, Buffer.from(text));
  const output = await recorder.end();
  recorder.close();
  return output;
}

function textOf({ chunks }: OutputPart): string {
  return Buffer.concat(chunks.map(({ data }) => data)).toString();
}

const LARGE = "0123456789abcdef".repeat(MAX_CHUNK_BYTES / 4);

test("keeps little in the ledger and much in a file, sealed, and reads both again after a restart", async () => {
  const outputs = open();
  const few = await printed(outputs, "few", ["one ", "two"]);
  expect(await readdir(folder)).toEqual([]);
  const many = await printed(outputs, "many", [LARGE, "end"]);
  const [file = ""] = await readdir(folder);
  expect((await readFile(join(folder, file))).includes("0123456789abcdef")).toBe(false);
  const later = open();
  expect(textOf(await later.read("few", ALL, { open: false, output: few }))).toBe("one two");
  const part = await later.read("many", ALL, { open: false, output: many });
  expect(textOf(part)).toBe(`${LARGE}end`);
  expect([part.next, part.summary.chunks, part.summary.bytes]).toEqual([5, 5, BigInt(LARGE.length + 3)]);
  expect([part.summary.truncatedAtByte, part.summary.kept]).toEqual([undefined, OutputKept.YES]);
});

test("reads parts by number, each with what came before on its stream", async () => {
  const outputs = open();
  const recorder = outputs.record("call", silent);
  const print = (stream: OutputStream, text: string) => recorder.push(stream, Buffer.from(text));
  await print(OutputStream.STDERR, "early");
  for (let n = 0; n < 8; n++) await print(OutputStream.STDOUT, `${n}`.repeat(MAX_CHUNK_BYTES));
  const range = { from: 7, maxBytes: 1, contextBytes: 1000 };
  const part = await outputs.read("call", range, undefined);
  expect(part.chunks.map(({ sequence }) => sequence)).toEqual([0, 6, 7]);
  expect([part.next, part.summary.open]).toEqual([8, true]);
  await recorder.end();
  recorder.close();
});

test("a file that a kill cut off is read up to its last whole chunk", async () => {
  const outputs = open();
  const recorder = outputs.record("cut", silent);
  for (let n = 0; n < 4; n++) await recorder.push(OutputStream.STDOUT, Buffer.from(LARGE));
  await recorder.push(OutputStream.STDERR, Buffer.from("slow"));
  // Also little is written soon, although its program goes on.
  await eventually(async () => {
    const whole = await open().read("cut", ALL, { open: false, output: undefined });
    expect(textOf(whole)).toBe(`${LARGE.repeat(4)}slow`);
  });
  const [file = ""] = await readdir(folder);
  await recorder.end();
  recorder.close();
  const { size } = await stat(join(folder, file));
  await truncate(join(folder, file), size - 10);
  const torn = await open().read("cut", ALL, { open: false, output: undefined });
  expect(textOf(torn)).toBe(LARGE.repeat(4));
  await truncate(join(folder, file), size - 45);
  await appendFile(join(folder, file), Buffer.alloc(100));
  expect(textOf(await open().read("cut", ALL, { open: false, output: undefined }))).toBe(LARGE.repeat(4));
});

test("lets the oldest ended calls go first, and says so", async () => {
  const outputs = open({ totalBytes: 2 * MIB, callBytes: 2 * MIB });
  const kept = new Map<string, LedgerOutput>();
  for (const callId of ["a", "b", "c"]) kept.set(callId, await printed(outputs, callId, [LARGE, LARGE, LARGE]));
  const read = (callId: string) => outputs.read(callId, ALL, { open: false, output: kept.get(callId) });
  expect((await read("a")).summary.kept).toBe(OutputKept.RELEASED);
  expect(textOf(await read("b"))).toHaveLength(3 * LARGE.length);
  expect(textOf(await read("c"))).toHaveLength(3 * LARGE.length);
  // By age, too: at the next start, and from time to time.
  for (const file of await readdir(folder)) await utimes(join(folder, file), 0, 0);
  open({ totalBytes: 2 * MIB });
  await expect.poll(() => readdir(folder)).toEqual([]);
});

test("says after which byte a call's output is not kept, and numbers what follows", async () => {
  const outputs = open({ callBytes: MIB / 2 });
  const seen: number[] = [];
  let isFollowed = false;
  const recorder = outputs.record("long", {
    isFollowed: () => isFollowed,
    onChunk: ({ sequence }) => seen.push(sequence),
  });
  for (let n = 0; n < 4; n++) await recorder.push(OutputStream.STDOUT, Buffer.from(LARGE));
  isFollowed = true;
  await recorder.push(OutputStream.STDOUT, Buffer.from("live"));
  const output = await recorder.end();
  recorder.close();
  expect(seen).toEqual(Array.from({ length: 17 }, (_, at) => at));
  const first = await outputs.read("long", ALL, { open: false, output });
  expect(first.summary.truncatedAtByte).toBe(BigInt(first.next * MAX_CHUNK_BYTES));
  expect(first.next).toBeLessThan(8);
  const rest = await outputs.read("long", { ...ALL, from: first.next }, { open: false, output });
  expect([rest.chunks.length, rest.next]).toEqual([0, 17]);
});

test("a program that has no more room waits for a reader that is catching up, and loses nothing for it", async () => {
  const outputs = open({ callBytes: MIB / 2 });
  let isFollowed = false;
  const live: number[] = [];
  const onChunk = ({ sequence }: { sequence: number }): void => {
    if (isFollowed) live.push(sequence);
  };
  const recorder = outputs.record("held", { isFollowed: () => isFollowed, onChunk });
  await recorder.push(OutputStream.STDOUT, Buffer.from(LARGE));
  await outputs.read("held", { ...ALL, maxBytes: 1 }, undefined);
  let waits = true;
  const push = recorder.push(OutputStream.STDOUT, Buffer.from(LARGE))?.then(() => {
    waits = false;
  });
  await sleep(300);
  const { next, summary } = await outputs.read("held", ALL, undefined);
  expect([waits, summary.truncatedAtByte]).toEqual([true, undefined]);
  isFollowed = true;
  await push;
  expect(live).toEqual(Array.from({ length: 8 - next }, (_, at) => next + at));
  await recorder.end();
  recorder.close();
});

test("a folder that cannot be written loses the output, says so, and the program goes on", async () => {
  const outputs = open();
  await rm(folder, { recursive: true });
  const output = await printed(outputs, "lost", [LARGE, LARGE]);
  expect(errors.length).toBeGreaterThan(0);
  expect(output.summary?.truncatedAtByte).toBe(0n);
  const part = await outputs.read("lost", ALL, { open: false, output });
  expect([part.chunks.length, part.summary.kept]).toEqual([0, OutputKept.RELEASED]);
});
