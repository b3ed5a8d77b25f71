import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type Attempt, hedge } from "./hedge.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Attempts that are decided by hand. */
function attempts() {
  const all: (PromiseWithResolvers<string> & { isStopped: boolean })[] = [];
  const begin = (): Attempt<string> => {
    const one = { ...Promise.withResolvers<string>(), isStopped: false };
    all.push(one);
    const stop = () => {
      one.isStopped = true;
    };
    return { ready: one.promise, stop };
  };
  return { all, begin, stopped: () => all.map(({ isStopped }) => isStopped) };
}

const never = new AbortController().signal;
const quietly = { againMs: 120, onAgain: () => undefined, signal: never };

test("the only attempt is enough where it succeeds in time", async () => {
  const { all, begin } = attempts();
  const first = hedge(begin, quietly);
  all[0]?.resolve("first");
  expect(await first).toBe("first");
  await vi.advanceTimersByTimeAsync(1000);
  expect(all).toHaveLength(1);
});

test("keeps the oldest and the newest, and stops who has lost", async () => {
  const { all, begin, stopped } = attempts();
  const onAgain = vi.fn();
  const first = hedge(begin, { ...quietly, onAgain });
  await vi.advanceTimersByTimeAsync(250);
  expect(onAgain).toHaveBeenCalledTimes(3);
  expect(stopped()).toEqual([false, true, true, false]);
  all[0]?.resolve("the oldest");
  expect(await first).toBe("the oldest");
  expect(stopped()).toEqual([false, true, true, true]);
});

test("a failure counts where nothing else goes on", async () => {
  const { all, begin } = attempts();
  const first = hedge(begin, quietly);
  const failed = expect(first).rejects.toThrow("refused");
  await vi.advanceTimersByTimeAsync(50);
  all[0]?.reject(new Error("lost"));
  await vi.advanceTimersByTimeAsync(10);
  all[1]?.reject(new Error("refused"));
  await failed;
  await vi.advanceTimersByTimeAsync(1000);
  expect(all).toHaveLength(2);
});

test("one that was stopped is not the first any more, and does not count as failed", async () => {
  const { all, begin } = attempts();
  const first = hedge(begin, quietly);
  await vi.advanceTimersByTimeAsync(130);
  all[1]?.resolve("too late");
  await vi.advanceTimersByTimeAsync(10);
  all[2]?.resolve("newest");
  expect(await first).toBe("newest");
});

test("the first ones follow each other sooner, and again after one that was refused", async () => {
  const { all, begin } = attempts();
  void hedge(begin, quietly).catch(() => undefined);
  const begun = async (ms: number): Promise<number> => {
    await vi.advanceTimersByTimeAsync(ms);
    return all.length;
  };
  expect(await begun(39)).toBe(1);
  expect(await begun(1)).toBe(2);
  expect(await begun(39)).toBe(2);
  expect(await begun(1)).toBe(3);
  expect(await begun(79)).toBe(3);
  expect(await begun(1)).toBe(4);
  all[3]?.reject(new Error("refused"));
  expect(await begun(39)).toBe(4);
  expect(await begun(1)).toBe(5);
});

test("is given up with the signal, also before it begins", async () => {
  const { begin, stopped } = attempts();
  const leaving = new AbortController();
  const first = hedge(begin, { ...quietly, signal: leaving.signal });
  leaving.abort(new Error("leaving"));
  await expect(first).rejects.toThrow("leaving");
  await expect(hedge(begin, { ...quietly, signal: leaving.signal })).rejects.toThrow("leaving");
  expect(stopped()).toEqual([true]);
});
