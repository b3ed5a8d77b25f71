import { expect, test } from "vitest";
import { within } from "./within.ts";

test("is true for a promise that resolves in time, false for one that does not, and rejects with the promise", async () => {
  expect(await within(Promise.resolve("done"), 1000)).toBe(true);
  expect(await within(new Promise(() => undefined), 1)).toBe(false);
  await expect(within(Promise.reject(new Error("broken")), 1000)).rejects.toThrow("broken");
});
