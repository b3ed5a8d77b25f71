import { expect, test } from "vitest";
import { orAborted, waitMsOf } from "./wait.ts";

test.each([
  ["does not wait where the caller names neither a wait nor a deadline", undefined, undefined, 0],
  ["waits as long as the caller requests where there is no deadline", 5000, undefined, 5000],
  ["does not wait where the caller requests not to, whatever the deadline", 0, 60_000, 0],
  ["leaves a second for the answer before a deadline", undefined, 60_000, 59_000],
  ["leaves a part of a short deadline", undefined, 1000, 800],
  ["keeps to the deadline where the request is longer", 60_000, 10_000, 9000],
  ["keeps to the request where the deadline is longer", 2000, 60_000, 2000],
  ["does not wait where the deadline has passed", undefined, -5, 0],
])("%s", (_, request, remaining, expected) => {
  expect(waitMsOf(request, remaining)).toBe(expected);
});

test("an abort ends the wait with its reason, at any time, and a result that came first stays", async () => {
  const aborted = AbortSignal.abort(new Error("gone"));
  await expect(orAborted(new Promise(() => undefined), aborted)).rejects.toThrow("gone");
  const leaving = new AbortController();
  const waiting = orAborted(new Promise(() => undefined), leaving.signal);
  leaving.abort(new Error("left"));
  await expect(waiting).rejects.toThrow("left");
  expect(await orAborted(Promise.resolve(7), new AbortController().signal)).toBe(7);
});
