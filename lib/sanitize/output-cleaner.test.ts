import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import {
  type ExecutionOutput,
  ExecutionOutputSchema,
  OutputStream,
} from "../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { createOutputCleaner } from "./output-cleaner.ts";
import { CONTEXT_BYTES } from "./sanitize.ts";

test("takes streams that a device makes up for standard output, and keeps nothing for each", () => {
  const cleaner = createOutputCleaner();
  // Half of an escape sequence is kept back until more has come.
  const half = Buffer.from("x\u001b[");
  for (let n = 0; n < 1000; n++) {
    const stream = n as OutputStream;
    const { stream: shown } = cleaner.clean(create(ExecutionOutputSchema, { callId: "c", stream, data: half }));
    expect(shown).toBe(stream === OutputStream.STDERR ? OutputStream.STDERR : OutputStream.STDOUT);
  }
  expect(cleaner.rest().length).toBeLessThanOrEqual(2);
});

/** Chunks of random sizes, of both streams, of texts that are hard to cut: long lines, no spaces, secrets, escape sequences. */
function hardChunks(seed: number): ExecutionOutput[] {
  let state = seed;
  const random = (below: number): number => {
    state = (state * 1103515245 + 12345) % 2 ** 31;
    return Math.floor((state / 2 ** 31) * below);
  };
  const secret = `ghp_${"aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zZaB3d"}`;
  const pieces = [
    "word ",
    "x".repeat(700),
    "line\n",
    `${secret} `,
    "\u001b[31mred\u001b[0m",
    "zażółć😀",
    "=".repeat(90),
    "password: hunter2\n",
  ];
  const chunks: ExecutionOutput[] = [];
  const text = { [OutputStream.STDOUT]: Buffer.alloc(0), [OutputStream.STDERR]: Buffer.alloc(0) };
  while (chunks.length < 400) {
    const stream = random(5) === 0 ? OutputStream.STDERR : OutputStream.STDOUT;
    while (text[stream].length < 4000)
      text[stream] = Buffer.concat([text[stream], Buffer.from(pieces[random(pieces.length)] ?? "")]);
    const length = 1 + random(3000);
    chunks.push(
      create(ExecutionOutputSchema, { sequence: chunks.length, stream, data: text[stream].subarray(0, length) }),
    );
    text[stream] = text[stream].subarray(length);
  }
  return chunks;
}

/** The last chunks of each stream that hold so many bytes. */
function contextOf(chunks: readonly ExecutionOutput[]): ExecutionOutput[] {
  const bytes = new Map<OutputStream, number>();
  return chunks
    .toReversed()
    .filter(({ stream, data }) => {
      const before = bytes.get(stream) ?? 0;
      bytes.set(stream, before + data.length);
      return before < CONTEXT_BYTES;
    })
    .toReversed();
}

test.each([1, 2, 3, 4, 5, 6, 7, 8])("goes on in the middle as one that has read all, seed %i", (seed) => {
  const chunks = hardChunks(seed);
  const whole = createOutputCleaner();
  const shown = chunks.map((chunk) => Buffer.from(whole.clean(chunk).data).toString());
  const rest = whole.rest().map(({ sequence, data }) => [sequence, Buffer.from(data).toString()]);
  for (const from of [1, 57, 133, 250, 399, 400]) {
    const later = createOutputCleaner(contextOf(chunks.slice(0, from)));
    const again = chunks.slice(from).map((chunk) => Buffer.from(later.clean(chunk).data).toString());
    expect(again).toEqual(shown.slice(from));
    expect(later.rest().map(({ sequence, data }) => [sequence, Buffer.from(data).toString()])).toEqual(rest);
  }
});
