import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { expect, it } from "vitest";
import { CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { type CallEvent, CallEventSchema } from "../../../gen/ts/reeve/call/v1/call_service_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { ExecutionOutputSchema, OutputStream } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { faultDetail } from "../../../lib/fault/fault.ts";
import { MAX_WAITING_BYTES } from "../../../lib/link/output-room.ts";
import { testCall } from "../../../testkit/test-call.ts";
import { createEventQueue } from "./event-queue.ts";

const CHUNK = 64 * 1024;

function printed(callId: string, text: string, sequence = 0): CallEvent {
  const value = create(ExecutionOutputSchema, {
    callId,
    sequence,
    stream: OutputStream.STDOUT,
    data: Buffer.from(text),
  });
  return create(CallEventSchema, { callId, event: { case: "output", value } });
}

function ended(callId: string, text = ""): CallEvent {
  const value = testCall({ id: callId, state: CallState.SUCCEEDED, output: { text } });
  return create(CallEventSchema, { callId, event: { case: "call", value } });
}

function shown(events: readonly CallEvent[]): string[] {
  return events.map(({ event }) => {
    if (event.case === "outputGap") return `gap ${event.value.fromSequence} ${event.value.untilSequence}`;
    return event.case === "output"
      ? `${event.value.sequence} ${Buffer.from(event.value.data).toString()}`
      : (event.case ?? "");
  });
}

async function readAll(queue: ReturnType<typeof createEventQueue>): Promise<CallEvent[][]> {
  queue.end();
  return Array.fromAsync(queue.batches());
}

it("keeps the numbers of chunks, and leaves out empty ones", async () => {
  const queue = createEventQueue();
  for (const event of [
    printed("a", "x", 7),
    printed("b", "y", 3),
    printed("a", "", 8),
    printed("a", "z", 9),
    ended("a"),
  ]) {
    void queue.push(event);
  }
  expect(shown((await readAll(queue)).flat())).toEqual(["7 x", "3 y", "9 z", "call"]);
});

it("makes batches that fit into a message", async () => {
  const queue = createEventQueue();
  for (let n = 0; n < 100; n++) void queue.push(ended(`call-${n}`, "x".repeat(100_000)));
  const batches = await readAll(queue);
  expect(batches.flat()).toHaveLength(100);
  for (const batch of batches) expect(batch.length).toBeLessThanOrEqual(11);
});

it("leaves out what a caller that does not read has no room for, says so, and never leaves out an end", async () => {
  const queue = createEventQueue();
  for (let n = 0; n <= MAX_WAITING_BYTES / CHUNK; n++) void queue.push(printed("a", "x".repeat(CHUNK), n));
  void queue.push(printed("a", "more", 65));
  void queue.push(ended("a"));
  const events = (await readAll(queue)).flat();
  const [last, end] = events.slice(-2);
  expect(shown([last, end].filter((event) => event !== undefined))).toEqual(["gap 64 66", "call"]);
});

it("drops a reader that leaves output unread for too long, and no program waits for it any more", async () => {
  const queue = createEventQueue({ stallMs: 20 });
  const batches = queue.batches();
  const taken = queue.push(printed("a", "x"));
  expect(shown((await batches.next()).value ?? [])).toEqual(["0 x"]);
  const waiting = queue.push(printed("a", "y"));
  await Promise.all([taken, waiting]);
  expect(queue.push(printed("a", "z"))).toBeUndefined();
  const error = await batches.next().then(() => undefined, faultDetail);
  expect(error).toMatchObject({ reason: ErrorReason.FOLLOWER_STALLED, metadata: { call_id: "a", limit_ms: "20" } });
});

it("keeps a reader that waits for what comes next", async () => {
  const queue = createEventQueue({ stallMs: 20 });
  const batches = queue.batches();
  void queue.push(printed("a", "x"));
  await batches.next();
  const next = batches.next();
  await sleep(60);
  void queue.push(printed("a", "y"));
  expect(shown((await next).value ?? [])).toEqual(["0 y"]);
});

it("goes on with live output when the caller has read, after saying what is missing", async () => {
  const queue = createEventQueue();
  for (let n = 0; n <= MAX_WAITING_BYTES / CHUNK; n++) void queue.push(printed("a", "x".repeat(CHUNK), n));
  const batches = queue.batches();
  let read = 0;
  while (read < MAX_WAITING_BYTES / CHUNK) read += (await batches.next()).value?.length ?? 0;
  void queue.push(printed("a", "on", 65));
  queue.end();
  const rest = await Array.fromAsync(batches);
  expect(shown(rest.flat())).toEqual(["gap 64 65", "65 on"]);
});
