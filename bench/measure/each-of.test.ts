import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { eachOf } from "./each-of.ts";

test("does each once, a few at a time, and keeps the order of the results", async () => {
  let running = 0;
  let most = 0;
  const results = await eachOf([5, 1, 3, 2, 4], 2, async (item) => {
    most = Math.max(most, ++running);
    for (let at = 0; at < item; at++) await turn();
    running--;
    return item * 10;
  });
  expect(results).toEqual([50, 10, 30, 20, 40]);
  expect(most).toBe(2);
});

test("rejects with the first failure", async () => {
  const failing = eachOf([1, 2, 3], 2, (item) => (item === 2 ? Promise.reject(new Error("two")) : Promise.resolve()));
  await expect(failing).rejects.toThrow("two");
});
