import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { paced } from "./pace.ts";

test("does so many in a turn, the oldest first", async () => {
  const seen: number[] = [];
  const take = paced<number>(
    2,
    (item) => seen.push(item),
    () => false,
  );
  for (let item = 1; item <= 5; item++) take(item);
  expect(seen).toEqual([1, 2]);
  await turn();
  expect(seen).toEqual([1, 2, 3, 4]);
  take(6);
  await turn();
  expect(seen).toEqual([1, 2, 3, 4, 5, 6]);
});

test("does what comes alone at once, turn after turn", async () => {
  const seen: number[] = [];
  const take = paced<number>(
    1,
    (item) => seen.push(item),
    () => false,
  );
  for (let item = 1; item <= 3; item++) {
    take(item);
    expect(seen).toHaveLength(item);
    await turn();
  }
});

test("passes over those that have gone while they waited, and they take no place", async () => {
  const seen: number[] = [];
  const gone = new Set<number>();
  const take = paced<number>(
    1,
    (item) => seen.push(item),
    (item) => gone.has(item),
  );
  for (let item = 1; item <= 4; item++) take(item);
  gone.add(2).add(3);
  await turn();
  expect(seen).toEqual([1, 4]);
});
