import { expect, test } from "vitest";
import { createOutputWindows } from "./output-windows.ts";

async function isPending(promise: Promise<void> | undefined): Promise<boolean> {
  if (promise === undefined) return false;
  return Promise.race([promise.then(() => false), new Promise<true>((resolve) => setImmediate(resolve, true))]);
}

test("lets as much through as the other side takes, and waits for more", async () => {
  const windows = createOutputWindows();
  windows.ask("call-1", 100n);
  expect(windows.room("call-1")).toBeUndefined();
  windows.sent("call-1", 150);
  const room = windows.room("call-1");
  expect(await isPending(room)).toBe(true);
  windows.extend("call-1", 150n);
  expect(await isPending(room)).toBe(true);
  windows.extend("call-1", 151n);
  expect(await isPending(room)).toBe(false);
  expect(windows.room("call-1")).toBeUndefined();
});

test("without a number it lets through what the link carries", () => {
  const windows = createOutputWindows();
  windows.ask("call-1", undefined);
  windows.sent("call-1", 2 ** 40);
  expect([windows.follows("call-1"), windows.room("call-1")]).toEqual([true, undefined]);
});

test.each([
  ["is not followed any more", (windows: ReturnType<typeof createOutputWindows>) => windows.extend("call-1", 0n)],
  ["has ended", (windows: ReturnType<typeof createOutputWindows>) => windows.forget("call-1")],
  ["is asked for again", (windows: ReturnType<typeof createOutputWindows>) => windows.ask("call-1", 10n)],
  ["lost its link", (windows: ReturnType<typeof createOutputWindows>) => windows.end()],
])("nothing waits for a call that %s", async (_, end) => {
  const windows = createOutputWindows();
  windows.ask("call-1", 10n);
  windows.sent("call-1", 10);
  const room = windows.room("call-1");
  expect(await isPending(room)).toBe(true);
  end(windows);
  expect(await isPending(room)).toBe(false);
  expect(windows.room("call-1")).toBeUndefined();
});

test("a call that was not asked for is not followed, and nothing makes it be", () => {
  const windows = createOutputWindows();
  windows.extend("call-1", 100n);
  windows.sent("call-1", 100);
  expect([windows.follows("call-1"), windows.size]).toEqual([false, 0]);
  windows.ask("call-1", 0n);
  expect([windows.follows("call-1"), windows.size]).toEqual([false, 1]);
  windows.extend("call-1", 5n);
  expect(windows.follows("call-1")).toBe(true);
});
