import { expect, it } from "vitest";
import { createPresence } from "./presence.ts";

const online = new Set<string>();
let nowMs = 0;
const presence = () => createPresence({ isOnline: (id) => online.has(id), now: () => nowMs, pollMs: 1 });
const { signal } = new AbortController();

it("resolves at once for a device that is online", async () => {
  online.add("a");
  expect(await presence().awaitOnline("a", { untilMs: 10, signal })).toBe("online");
});

it("resolves for each device when it comes", async () => {
  const waits = presence();
  const arrived: string[] = [];
  const wait = (id: string) => waits.awaitOnline(id, { untilMs: 10, signal }).then(() => arrived.push(id));
  const both = [wait("b"), wait("c")];
  online.add("c");
  await both[1];
  expect(arrived).toEqual(["c"]);
  online.add("b");
  await both[0];
  expect(arrived).toEqual(["c", "b"]);
});

it("resolves when the time is over, and where it was before", async () => {
  const waits = presence();
  const late = waits.awaitOnline("d", { untilMs: 10, signal });
  nowMs = 10;
  expect(await late).toBe("late");
  online.add("d");
  expect(await waits.awaitOnline("d", { untilMs: 10, signal })).toBe("late");
  nowMs = 0;
});

it("resolves when the wait is given up", async () => {
  const controller = new AbortController();
  const waiting = presence().awaitOnline("e", { untilMs: 10, signal: controller.signal });
  controller.abort();
  expect(await waiting).toBe("aborted");
});
