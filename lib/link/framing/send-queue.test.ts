import { expect, test } from "vitest";
import { FRAME_BYTES, FRAME_ITEMS, MAX_ITEM_BYTES, MAX_UNFINISHED_BYTES, PIECE_BYTES } from "./limits.ts";
import { createSendQueue, type Room, type SendQueue, type Taken } from "./send-queue.ts";
import { keysOf, type Toy, toy, toyShape } from "./shape.fixture.ts";

const MIB = 1024 * 1024;
const open: Room = { free: MIB, reserve: MIB / 4, idle: true, large: "pieces" };

function queueOf(...toys: Toy[]): SendQueue<Toy> {
  const queue = createSendQueue(toyShape);
  for (const each of toys) queue.add(each);
  return queue;
}

function takeAll(queue: SendQueue<Toy>, room: Room = open): Taken<Toy>[] {
  const taken: Taken<Toy>[] = [];
  for (let next = queue.take(room); next !== undefined; next = queue.take(room)) taken.push(next);
  return taken;
}

test("sends what waits in one frame, in order", () => {
  const queue = queueOf(toy("a"), toy("b"), toy("a", 1));
  expect(queue.take(open)).toEqual({ items: [toy("a"), toy("b"), toy("a", 1)], piece: undefined, bytes: 300 });
  expect(queue.isEmpty()).toBe(true);
  expect(queue.take(open)).toBeUndefined();
});

test("bounds a frame by count and bytes", () => {
  const many = queueOf(...Array.from({ length: FRAME_ITEMS + 1 }, (_, index) => toy("a", index, 1)));
  expect(takeAll(many).map(({ items }) => items.length)).toEqual([FRAME_ITEMS, 1]);
  const heavy = queueOf(...Array.from({ length: 40 }, (_, index) => toy("a", index, 8192)));
  for (const { bytes } of takeAll(heavy)) expect(bytes).toBeLessThanOrEqual(FRAME_BYTES);
});

test("a small item behind one of 4 MiB goes first", () => {
  const queue = queueOf(toy("big", 0, 4 * MIB), toy("small"));
  const first = queue.take(open);
  expect(keysOf(first?.items ?? [])).toEqual(["small"]);
  expect(first?.piece).toMatchObject({ last: false });
  expect(first?.piece?.data.length).toBe(PIECE_BYTES);
  expect(takeAll(queue)).toHaveLength((4 * MIB) / PIECE_BYTES - 1);
});

test("large items take turns, a piece each", () => {
  const queue = queueOf(toy("a", 0, 3 * PIECE_BYTES), toy("b", 0, 3 * PIECE_BYTES));
  expect(takeAll(queue).map(({ piece }) => [piece?.message, piece?.last])).toEqual([
    [1, false],
    [2, false],
    [1, false],
    [2, false],
    [1, true],
    [2, true],
  ]);
});

test("what a program prints takes turns with another's, and small items pass it", () => {
  const chunk = 64 * 1024;
  const queue = queueOf(toy("a", 0, chunk), toy("a", 1, chunk), toy("a", 2, chunk), toy("b", 0, chunk), toy("c"));
  expect(takeAll(queue).map(({ items }) => keysOf(items))).toEqual([["c", "a"], ["b"], ["a"], ["a"]]);
});

test("an item waits behind larger ones of its own key", () => {
  const queue = queueOf(toy("a", 0, 2 * PIECE_BYTES), toy("a", 1), toy("b", 0, 9000), toy("b", 1));
  const order = takeAll(queue).flatMap(({ items, piece }) => [
    ...items.map(({ key, number }) => `${key}${number}`),
    ...(piece === undefined ? [] : [piece.last ? "last" : "piece"]),
  ]);
  expect(order).toEqual(["piece", "b0", "b1", "last", "a1"]);
});

test("a large item does not overtake small ones of its own key that the window holds back", () => {
  const queue = queueOf(toy("a", 0, 8000), toy("a", 1, PIECE_BYTES * 2));
  expect(queue.take({ ...open, free: 100, idle: false })).toBeUndefined();
  expect(queue.take({ ...open, free: 9000, idle: false })).toMatchObject({ items: [{ number: 0 }], piece: undefined });
  expect(queue.take(open)?.piece).toBeDefined();
});

test("keeps to the window, but lets one item go where nothing is in flight", () => {
  const queue = queueOf(toy("a", 0, 5000), toy("a", 1, 5000));
  expect(queue.take({ ...open, free: 4000, idle: false })).toBeUndefined();
  expect(queue.take({ ...open, free: 4000, idle: true })?.bytes).toBe(5000);
  const large = queueOf(toy("a", 0, 2 * PIECE_BYTES));
  expect(large.take({ ...open, free: 4000, reserve: 0, idle: false })).toBeUndefined();
  expect(large.take({ ...open, free: 4000, reserve: 0, idle: true })?.bytes).toBe(PIECE_BYTES);
});

test("large items leave a part of the window to small ones", () => {
  const queue = queueOf(toy("a", 0, 2 * PIECE_BYTES));
  const room = { free: 100_000, reserve: 50_000, idle: false, large: "pieces" } as const;
  expect(queue.take(room)).toBeUndefined();
  queue.add(toy("b"));
  expect(queue.take(room)).toMatchObject({ items: [{ key: "b" }], piece: undefined });
});

test("large items that were passed over for long go before small ones", () => {
  const queue = queueOf(toy("a", 0, 2 * PIECE_BYTES));
  const tight = { free: 60_000, reserve: 0, idle: false, large: "pieces" } as const;
  let passedOver = 0;
  for (; passedOver < 100; passedOver++) {
    queue.add(toy("b", passedOver));
    if (queue.take(tight) === undefined) break;
  }
  expect(passedOver).toBe(8);
  expect(queue.take({ ...tight, free: PIECE_BYTES })?.piece).toBeDefined();
  expect(queue.take(tight)?.items).toHaveLength(1);
});

test("an urgent item passes a full window, but not what waits of its own key", () => {
  const full = { free: 0, reserve: 0, idle: false, large: "pieces" } as const;
  const cancel = (key: string): Toy => ({ ...toy(key, 9), urgent: true });
  const queue = queueOf(toy("a"), toy("b", 0, 3 * PIECE_BYTES), cancel("a"), cancel("b"), cancel("c"));
  expect(keysOf(queue.take(full)?.items ?? [])).toEqual(["c"]);
  expect(queue.take(full)).toBeUndefined();
  const rest = takeAll(queue).flatMap(({ items }) => items.map(({ key, number }) => `${key}${number}`));
  expect(rest).toEqual(["a0", "a9", "b9"]);
});

test("begins no more large items than the other side keeps", () => {
  const size = MAX_ITEM_BYTES;
  const queue = queueOf(...Array.from({ length: 5 }, (_, index) => toy(`k${index}`, 0, size)));
  const under = new Set<number>();
  let most = 0;
  for (const { piece } of takeAll(queue)) {
    if (piece === undefined) continue;
    under.add(piece.message);
    most = Math.max(most, under.size);
    if (piece.last) under.delete(piece.message);
  }
  expect(most).toBe(MAX_UNFINISHED_BYTES / size);
  expect(queue.isEmpty()).toBe(true);
});

test("holds large items while it is not known whether the other side takes pieces, and nothing else", () => {
  const queue = queueOf(toy("a", 0, 2 * PIECE_BYTES), toy("a", 1), toy("b"));
  expect(takeAll(queue, { ...open, large: "wait" }).map(({ items }) => keysOf(items))).toEqual([["b"]]);
  const plain = { free: Infinity, reserve: 0, idle: true, large: "whole" } as const;
  const rest = takeAll(queue, plain).flatMap(({ items }) => items);
  expect(rest).toEqual([toy("a", 0, 2 * PIECE_BYTES), toy("a", 1)]);
  expect([queue.wholeBytes(), queue.largeBytes()]).toEqual([0, 0]);
});

test("refuses an item that is too large for any link", () => {
  expect(() => queueOf(toy("a", 0, MAX_ITEM_BYTES + 1)).take(open)).toThrow("larger than a link takes");
});
