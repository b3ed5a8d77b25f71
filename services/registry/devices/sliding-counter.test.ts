import { expect, test } from "vitest";
import { createSlidingCounter } from "./sliding-counter.ts";

test("counts by device, and forgets what is too long ago", () => {
  let now = 0;
  const suspicions = createSlidingCounter({ limit: 3, withinMs: 1000, now: () => now });
  expect([suspicions.add("a"), suspicions.add("a"), suspicions.add("b")]).toEqual([false, false, false]);
  now = 1000;
  expect([suspicions.add("a"), suspicions.add("a"), suspicions.add("a")]).toEqual([false, false, true]);
});
