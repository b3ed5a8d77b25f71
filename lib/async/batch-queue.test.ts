import { expect, test } from "vitest";
import { createBatchQueue } from "./batch-queue.ts";

test("gathers what is pushed while the reader is busy into one batch", async () => {
  const queue = createBatchQueue<number>();
  const batches = queue.batches();
  queue.push(1);
  queue.push(2);
  expect((await batches.next()).value).toEqual([1, 2]);
  queue.push(3);
  expect((await batches.next()).value).toEqual([3]);
});

test("hands over what waits before it ends", async () => {
  const queue = createBatchQueue<number>({ maxBatch: 2 });
  for (const item of [1, 2, 3]) queue.push(item);
  queue.end();
  queue.push(4);
  expect(await Array.fromAsync(queue.batches())).toEqual([[1, 2], [3]]);
});

test("keeps a batch under the byte limit, but lets a single large item pass", async () => {
  const queue = createBatchQueue<number>({ sizeOf: (item) => item, maxBytes: 10 });
  for (const item of [4, 5, 6, 50, 1]) queue.push(item);
  queue.end();
  expect(await Array.fromAsync(queue.batches())).toEqual([[4, 5], [6], [50], [1]]);
});

test("makes a producer wait until there is room", async () => {
  const queue = createBatchQueue<number>({ highWater: 2, maxBatch: 1 });
  const batches = queue.batches();
  queue.push(1);
  queue.push(2);
  let went = false;
  const room = queue.room()?.then(() => {
    went = true;
  });
  await Promise.resolve();
  expect(went).toBe(false);
  await batches.next();
  await room;
  expect(went).toBe(true);
});

test("makes a producer wait by bytes too", async () => {
  const queue = createBatchQueue<number>({ highWaterBytes: 10, sizeOf: (item) => item, maxBatch: 1 });
  const batches = queue.batches();
  for (const item of [6, 6]) queue.push(item);
  let went = false;
  const room = queue.room()?.then(() => {
    went = true;
  });
  await Promise.resolve();
  expect(went).toBe(false);
  await batches.next();
  await room;
  expect(went).toBe(true);
});

test("lets go of waiting producers and of later pushes when the reader leaves", async () => {
  const queue = createBatchQueue<number>({ highWater: 1 });
  const batches = queue.batches();
  queue.push(1);
  await batches.next();
  queue.push(2);
  const room = queue.room();
  await batches.return();
  await room;
});

test("fails the reader with the error it was ended with", async () => {
  const queue = createBatchQueue<number>();
  const next = queue.batches().next();
  queue.end(new Error("draining"));
  await expect(next).rejects.toThrow("draining");
});
