import { open } from "node:fs/promises";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import type { RegistryClient } from "../../client/registry.ts";
import { type Call, CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { CallerFrameSchema, CallToolsRequestSchema } from "../../gen/ts/reeve/call/v1/call_service_pb.ts";
import { createBatchQueue } from "../../lib/async/batch-queue.ts";
import { eachOf } from "../measure/each-of.ts";
import { startPlane } from "../plane/plane.ts";
import { callerOf } from "../subjects/paths.ts";
import type { StreamSubject, Transfer } from "./stream-subject.ts";

type Registry = RegistryClient;

/** A line is nine digits and its end. */
const LINE_BYTES = 10;
const FIRST_LINE = 100_000_000;

/** What fs.read returns at most, in bytes. */
const READ_BYTES = 256 * 1024;
const READS_AT_ONCE = 16;

let calls = 0;

/** What a program on an attached device prints, as the caller gets it, and a file that the caller reads in pieces. */
export async function governedStreams(parts: AsyncDisposableStack): Promise<StreamSubject[]> {
  const plane = parts.adopt(await startPlane({ devices: { only: { link: 0 } } }), (one) => one.close());
  const registry = callerOf(plane, 0);
  return [
    {
      name: "exec, live output",
      what: "mTLS attach, framing, cleaning, the caller's stream; the program waits for its reader",
      transfer: (bytes) => printed(registry, bytes),
    },
    {
      name: "job, read afterwards",
      what: "what the device kept of that, from its file on, sanitized for this reader",
      transfer: (bytes) => readAfterwards(registry, bytes),
    },
    {
      name: "fs.read, 256 KiB a call",
      what: `the same way as results, ${READS_AT_ONCE} calls in flight`,
      transfer: (bytes) => readFile(registry, join(plane.work, "large"), bytes),
    },
  ];
}

/** Has a program print numbers as fast as it can, and reads it on a stream of calls. */
async function printed(registry: Registry, bytes: number): Promise<Transfer> {
  const lines = Math.ceil(bytes / LINE_BYTES);
  const callId = `bench-stream-${process.pid}-${calls++}`;
  const params = { argv: ["seq", String(FIRST_LINE), String(FIRST_LINE + lines - 1)], timeout_ms: 600_000 };
  const messages = [
    create(CallerFrameSchema, { frame: { case: "call", value: { callId, device: "only", tool: "exec", params } } }),
  ];
  const asked = createBatchQueue<typeof messages>();
  asked.push(messages);
  async function* requests() {
    for await (const batch of asked.batches())
      for (const each of batch) yield create(CallToolsRequestSchema, { frames: each });
  }
  const began = performance.now();
  let arrivedBytes = 0;
  let end: Call | undefined;
  for await (const { events } of registry.callTools(requests())) {
    for (const { event } of events) {
      if (event.case === "call") end = event.value;
      else if (event.case === "refusal") throw new Error(event.value.message);
      else if (event.case === "output") arrivedBytes += event.value.data.length;
    }
    if (end !== undefined) asked.end();
  }
  requireSuccess(end);
  const sentBytes = lines * LINE_BYTES;
  if (arrivedBytes !== sentBytes) throw new Error(`${arrivedBytes} of ${sentBytes} bytes came`);
  return { bytes: arrivedBytes, elapsedMs: performance.now() - began };
}

/** Reads what a program has printed without a follower, once it has ended. */
async function readAfterwards(registry: Registry, bytes: number): Promise<Transfer> {
  const lines = Math.ceil(bytes / LINE_BYTES);
  const callId = `bench-job-${process.pid}-${calls++}`;
  const params = { argv: ["seq", String(FIRST_LINE), String(FIRST_LINE + lines - 1)], timeout_ms: 600_000 };
  requireSuccess((await registry.callTool({ callId, device: "only", tool: "exec", params })).call);
  const began = performance.now();
  let arrivedBytes = 0;
  for await (const { event } of registry.watchCall({ callId, outputFromSequence: 0 }))
    if (event?.event.case === "output") arrivedBytes += event.event.value.data.length;
  if (arrivedBytes !== lines * LINE_BYTES) throw new Error(`${arrivedBytes} of ${lines * LINE_BYTES} bytes came`);
  return { bytes: arrivedBytes, elapsedMs: performance.now() - began };
}

/** Reads a file of so many bytes, piece by piece. */
async function readFile(registry: Registry, path: string, bytes: number): Promise<Transfer> {
  await makeFile(path, bytes);
  const offsets = Array.from({ length: Math.ceil(bytes / READ_BYTES) }, (_, at) => at * READ_BYTES);
  const began = performance.now();
  const sizes = await eachOf(offsets, READS_AT_ONCE, async (offset) => {
    const params = { path, offset, max_bytes: READ_BYTES };
    const { call } = await registry.callTool({ device: "only", tool: "fs.read", params });
    requireSuccess(call);
    const text = call?.status?.output?.text;
    return typeof text === "string" ? text.length : 0;
  });
  const elapsedMs = performance.now() - began;
  const arrivedBytes = sizes.reduce((sum, size) => sum + size, 0);
  if (arrivedBytes !== bytes) throw new Error(`${arrivedBytes} of ${bytes} bytes came`);
  return { bytes: arrivedBytes, elapsedMs };
}

async function makeFile(path: string, bytes: number): Promise<void> {
  await using file = await open(path, "w");
  const block = Buffer.from("0123456789abcde\n".repeat(64 * 1024));
  for (let written = 0; written < bytes; ) {
    const size = Math.min(block.length, bytes - written);
    await file.write(block, 0, size);
    written += size;
  }
}

function requireSuccess(call: Call | undefined): void {
  if (call?.status?.state === CallState.SUCCEEDED) return;
  throw new Error(`a call ended as ${call?.status?.state}: ${call?.status?.errorMessage}`);
}
