import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { FramingSchema, PieceSchema } from "../../../gen/ts/reeve/common/v1/framing_pb.ts";
import { faultDetail } from "../../fault/fault.ts";
import { createIntake, type Intake } from "./intake.ts";
import { MAX_UNFINISHED_BYTES, PIECE_BYTES, WINDOW_SLACK_BYTES } from "./limits.ts";
import { type Toy, type ToyFrame, toy, toyShape } from "./shape.fixture.ts";

const MIB = 1024 * 1024;

interface Said {
  toys?: Toy[];
  pieces?: { message: number; data: Uint8Array; last?: boolean }[];
}

/** Feeds frames that are numbered by themselves. */
function feeder(intake: Intake<ToyFrame>) {
  let number = 0n;
  return ({ toys = [], pieces = [] }: Said) =>
    intake.take(
      { toys },
      create(FramingSchema, { number: ++number, pieces: pieces.map((piece) => create(PieceSchema, piece)) }),
    );
}

/** What a link was ended for. */
function refusalOf(run: () => unknown): { reason: ErrorReason; metadata: Record<string, string> } | undefined {
  try {
    run();
  } catch (error: unknown) {
    const detail = faultDetail(error);
    return detail && { reason: detail.reason, metadata: detail.metadata };
  }
  return undefined;
}

test.each([
  ["a gap", [1n, 3n]],
  ["a repeat", [1n, 1n]],
  ["a wrong start", [2n]],
  ["no number", [0n]],
])("refuses %s", (_, numbers) => {
  const intake = createIntake(toyShape, MIB);
  const last = numbers.pop() ?? 0n;
  for (const number of numbers) intake.take({ toys: [] }, create(FramingSchema, { number }));
  expect(refusalOf(() => intake.take({ toys: [] }, create(FramingSchema, { number: last })))).toEqual({
    reason: ErrorReason.INVALID_INPUT,
    metadata: { field: "framing.number", rule: "gap" },
  });
});

test("counts as taken what the reader has dealt with", () => {
  const intake = createIntake(toyShape, MIB);
  const feed = feeder(intake);
  expect(feed({})).toBeUndefined();
  const arrived = feed({ toys: [toy("a"), toy("b")] });
  expect(arrived?.message.toys).toHaveLength(2);
  expect(intake.consumedBytes()).toBe(0);
  if (arrived !== undefined) intake.consumed(arrived);
  expect(intake.consumedBytes()).toBe(200);
});

test("puts items together from pieces of several, after what came whole", () => {
  const intake = createIntake(toyShape, MIB);
  const feed = feeder(intake);
  const [a, b] = [toy("a", 1, 3000), toy("b", 2, 2000)].map((each) => toyShape.encode(each)) as [
    Uint8Array,
    Uint8Array,
  ];
  expect(feed({ pieces: [{ message: 7, data: a.subarray(0, 1000) }] })).toBeUndefined();
  expect(feed({ pieces: [{ message: 9, data: b.subarray(0, 1000) }] })).toBeUndefined();
  const arrived = feed({
    toys: [toy("c")],
    pieces: [
      { message: 9, data: b.subarray(1000), last: true },
      { message: 7, data: a.subarray(1000), last: true },
    ],
  });
  expect(arrived?.message.toys).toEqual([toy("c"), toy("b", 2, 2000), toy("a", 1, 3000)]);
  expect(intake.isUnfinished()).toBe(false);
});

test.each<[string, Said, ErrorReason, string]>([
  ["an empty piece", { pieces: [{ message: 1, data: new Uint8Array(0) }] }, ErrorReason.INVALID_INPUT, "empty"],
  [
    "a piece that is too large",
    { pieces: [{ message: 1, data: new Uint8Array(PIECE_BYTES + 1) }] },
    ErrorReason.INPUT_TOO_LARGE,
    "65536",
  ],
  [
    "pieces that are no item",
    { pieces: [{ message: 1, data: Buffer.from("{"), last: true }] },
    ErrorReason.INVALID_INPUT,
    "decode",
  ],
  [
    "more than the window",
    { toys: [toy("a", 0, MIB + WINDOW_SLACK_BYTES + 1)] },
    ErrorReason.INPUT_TOO_LARGE,
    String(MIB),
  ],
])("refuses %s", (_, said, reason, word) => {
  const refusal = refusalOf(() => feeder(createIntake(toyShape, MIB))(said));
  expect(refusal?.reason).toBe(reason);
  expect(Object.values(refusal?.metadata ?? {})).toContain(word);
});

test("refuses an item of too many pieces, and too many unfinished items", () => {
  const piece = new Uint8Array(PIECE_BYTES);
  const one = feeder(createIntake(toyShape, MIB));
  const long = refusalOf(() => {
    for (;;) one({ pieces: [{ message: 1, data: piece }] });
  });
  expect(long).toEqual({
    reason: ErrorReason.INPUT_TOO_LARGE,
    metadata: { field: "framing.pieces", limit: String(8 * MIB) },
  });
  const other = feeder(createIntake(toyShape, MIB));
  let message = 0;
  const wide = refusalOf(() => {
    for (;;) other({ pieces: [{ message: message++, data: piece }] });
  });
  expect(wide?.metadata).toEqual({ field: "framing.pieces", limit: String(MAX_UNFINISHED_BYTES) });
  expect(message).toBe(MAX_UNFINISHED_BYTES / PIECE_BYTES + 1);
});

test("refuses many unfinished items, however small", () => {
  const feed = feeder(createIntake(toyShape, MIB));
  const pieces = Array.from({ length: 1000 }, (_, message) => ({ message, data: new Uint8Array(1) }));
  expect(refusalOf(() => feed({ pieces }))?.metadata).toEqual({ field: "framing.pieces", limit: "256" });
});

test("does not ask for more while put together items pile up unread", () => {
  const intake = createIntake(toyShape, MIB);
  const feed = feeder(intake);
  const piles: NonNullable<ReturnType<typeof feed>>[] = [];
  const bytes = toyShape.encode(toy("a", 0, PIECE_BYTES));
  let received = 0;
  const refusal = refusalOf(() => {
    for (;;) {
      const arrived = feed({ pieces: [{ message: 1, data: bytes, last: true }] });
      if (arrived !== undefined) piles.push(arrived);
      received += bytes.length;
    }
  });
  // What has no reader: the window, twice over (once acknowledged), and the slack.
  expect(refusal?.metadata.field).toBe("framing.window_bytes");
  expect(received).toBeLessThanOrEqual(3 * MIB + 2 * PIECE_BYTES);
  for (const arrived of piles) intake.consumed(arrived);
  expect(intake.consumedBytes()).toBe(piles.length * PIECE_BYTES + PIECE_BYTES);
});
