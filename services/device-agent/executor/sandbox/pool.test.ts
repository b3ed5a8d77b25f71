import { expect, test, vi } from "vitest";
import { createPool } from "./pool.ts";
import type { Waiting } from "./waiting.ts";

/** Starts that end when the test says so. */
function startsByHand() {
  const starts: PromiseWithResolvers<Waiting>[] = [];
  const start = () => {
    const one = Promise.withResolvers<Waiting>();
    starts.push(one);
    return one.promise;
  };
  const ready = (at: number): Waiting => {
    const one = { ended: false, startedAt: performance.now(), close: vi.fn() } as unknown as Waiting;
    starts[at]?.resolve(one);
    return one;
  };
  return { starts, start, ready };
}

test("a run gets the one that is being started, and no further one is", async () => {
  const { starts, start, ready } = startsByHand();
  using pool = createPool({ start, most: 4 });
  const first = pool.take();
  const one = ready(0);
  expect(await first).toBe(one);
  pool.refill();
  expect(starts).toHaveLength(2);
  const second = pool.take();
  const other = ready(1);
  expect(await second).toBe(other);
  expect(starts).toHaveLength(2);
});

test("a run whose waited start fails starts one itself, and reports why it cannot", async () => {
  const { starts, start } = startsByHand();
  using pool = createPool({ start, most: 4 });
  const first = expect(pool.take()).rejects.toThrow("number 0");
  pool.refill();
  const waited = expect(pool.take()).rejects.toThrow("number 2");
  for (let at = 0; at < 3; at++) {
    starts[at]?.reject(new Error(`number ${at}`));
    await new Promise((resolve) => setImmediate(resolve));
  }
  await Promise.all([first, waited]);
  expect(starts).toHaveLength(3);
});

test("beside runs that follow each other nothing is started while enough wait, and all of it in a pause", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] });
  try {
    const { starts, start, ready } = startsByHand();
    using pool = createPool({ start, most: 4 });
    const finish = async (from: number) => {
      for (let at = from; at < starts.length; at++) ready(at);
      await new Promise((resolve) => setImmediate(resolve));
    };
    for (let use = 0; use < 4; use++) {
      const taken = pool.take();
      await finish(0);
      await taken;
      pool.refill();
      await finish(0);
    }
    vi.advanceTimersByTime(100);
    await finish(0);
    const full = starts.length;
    await pool.take();
    pool.refill();
    expect(starts).toHaveLength(full);
    vi.advanceTimersByTime(100);
    expect(starts).toHaveLength(full + 1);
  } finally {
    vi.useRealTimers();
  }
});
