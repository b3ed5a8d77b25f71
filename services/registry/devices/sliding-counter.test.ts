import { expect, test } from "vitest";
import { createSlidingCounter } from "./sliding-counter.ts";

test("counts by device, and forgets what is too long ago", () => {
  let now = 0;
  const counter = createSlidingCounter({ limit: 3, withinMs: 1000, now: () => now });
  expect([counter.add("a"), counter.add("a"), counter.add("b")]).toEqual([false, false, false]);
  now = 1000;
  expect([counter.add("a"), counter.add("a"), counter.add("a")]).toEqual([false, false, true]);
});
