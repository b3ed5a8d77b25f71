import { expect, test } from "vitest";
import { createOutputFlow, type Followers, OUTPUT_WINDOW_BYTES } from "./output-flow.ts";

function followersWith(isFollowed: boolean) {
  const listeners = new Set<() => void>();
  const followers: Followers = {
    isFollowed: () => isFollowed,
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
  const set = (now: boolean): void => {
    isFollowed = now;
    for (const listener of listeners) listener();
  };
  return { followers, set, listeners };
}

const turn = () => new Promise(setImmediate);

test("takes more as it is read, not for each chunk", async () => {
  const extended: bigint[] = [];
  const flow = createOutputFlow(followersWith(true).followers, (until) => extended.push(until));
  expect(flow.begin()).toBe(BigInt(OUTPUT_WINDOW_BYTES));
  const quarter = OUTPUT_WINDOW_BYTES / 4;
  const read = Promise.withResolvers<void>();
  flow.received(quarter, read.promise);
  await turn();
  expect(extended).toEqual([]);
  read.resolve();
  await turn();
  expect(extended).toEqual([BigInt(OUTPUT_WINDOW_BYTES + quarter)]);
  for (let n = 0; n < 8; n++) flow.received(quarter / 8, undefined);
  expect(extended).toEqual([1, 2].map((n) => BigInt(OUTPUT_WINDOW_BYTES + n * quarter)));
});

test("asks for output when the first one follows, and for none when the last one leaves", () => {
  const extended: bigint[] = [];
  const { followers, set } = followersWith(false);
  const flow = createOutputFlow(followers, (until) => extended.push(until));
  set(true);
  expect(extended).toEqual([]);
  set(false);
  expect(flow.begin()).toBe(0n);
  set(true);
  flow.received(1000, undefined);
  set(false);
  flow.received(OUTPUT_WINDOW_BYTES, undefined);
  set(true);
  expect(extended).toEqual([BigInt(OUTPUT_WINDOW_BYTES), 0n, BigInt(1000 + OUTPUT_WINDOW_BYTES + OUTPUT_WINDOW_BYTES)]);
});

test("counts anew in a session after a break, whatever is read late of the one before", async () => {
  const extended: bigint[] = [];
  const flow = createOutputFlow(followersWith(true).followers, (until) => extended.push(until));
  flow.begin();
  const late = Promise.withResolvers<void>();
  flow.received(OUTPUT_WINDOW_BYTES, late.promise);
  expect(flow.begin()).toBe(BigInt(OUTPUT_WINDOW_BYTES));
  late.resolve();
  await turn();
  expect(extended).toEqual([]);
});

test("without followers it bounds nothing, and after the end it listens to no followers", () => {
  const unbounded = createOutputFlow(undefined, () => expect.fail("nothing is to be said"));
  expect(unbounded.begin()).toBeUndefined();
  unbounded.received(2 ** 40, undefined);
  const { followers, listeners } = followersWith(true);
  createOutputFlow(followers, () => undefined).end();
  expect(listeners.size).toBe(0);
});
