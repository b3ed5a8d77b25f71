import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { onAbort } from "./on-abort.ts";

test("calls each listener once, but those that have left", () => {
  const called: string[] = [];
  const leaving = new AbortController();
  onAbort(leaving.signal, () => called.push("a"));
  const leave = onAbort(leaving.signal, () => called.push("b"));
  onAbort(leaving.signal, () => called.push("c"));
  leave();
  leave();
  leaving.abort();
  leaving.abort();
  expect(called).toEqual(["a", "c"]);
});

test("the same listener twice is two", () => {
  let count = 0;
  const leaving = new AbortController();
  const listener = () => void count++;
  onAbort(leaving.signal, listener)();
  onAbort(leaving.signal, listener);
  onAbort(leaving.signal, listener);
  leaving.abort();
  expect(count).toBe(2);
});

test("a signal has one listener, however many listen", () => {
  const { signal } = new AbortController();
  for (let i = 0; i < 100; i++) onAbort(signal, () => undefined);
  expect(getEventListeners(signal, "abort")).toHaveLength(1);
});
