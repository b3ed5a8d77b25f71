import { expect, test } from "vitest";
import { createBag } from "./bag.ts";

test("holds what was added and not removed, in whatever order that happens", () => {
  let pick = 0;
  const bag = createBag<string>(() => pick);
  expect(bag.any()).toBeUndefined();
  for (const item of ["a", "b", "c", "d"]) bag.add(item);
  for (const item of ["b", "d", "d", "x", "a"]) bag.remove(item);
  expect([bag.size, bag.any()]).toEqual([1, "c"]);
  bag.add("b");
  pick = 1;
  expect(bag.any()).toBe("b");
  for (const item of ["b", "c"]) bag.remove(item);
  expect([bag.size, bag.any()]).toEqual([0, undefined]);
});

test("takes each one now and then", () => {
  const bag = createBag<number>();
  for (let item = 0; item < 4; item++) bag.add(item);
  const taken = new Set(Array.from({ length: 1000 }, () => bag.any()));
  expect(taken).toEqual(new Set([0, 1, 2, 3]));
});
