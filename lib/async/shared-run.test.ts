import { expect, test } from "vitest";
import { createSharedRun } from "./shared-run.ts";

/** Work that lasts until it is let go. */
function slowWork() {
  const runs: PromiseWithResolvers<void>[] = [];
  const shared = createSharedRun(() => {
    const run = Promise.withResolvers<void>();
    runs.push(run);
    return run.promise;
  });
  return { shared, runs };
}

test("those who ask while it runs share one run that begins after they asked", async () => {
  const { shared, runs } = slowWork();
  const first = shared.run();
  const others = [shared.run(), shared.run(), shared.run()];
  expect(runs).toHaveLength(1);
  runs[0]?.resolve();
  await first;
  await expect.poll(() => runs.length).toBe(2);
  const later = shared.run();
  runs[1]?.resolve();
  await Promise.all(others);
  await expect.poll(() => runs.length).toBe(3);
  runs[2]?.resolve();
  await later;
  await shared.quiet();
  expect(runs).toHaveLength(3);
});

test("a run that fails fails for those who asked for it, and not for those who wait for the next", async () => {
  const { shared, runs } = slowWork();
  const first = shared.run();
  const second = shared.run();
  runs[0]?.reject(new Error("offline"));
  await expect(first).rejects.toThrow("offline");
  await expect.poll(() => runs.length).toBe(2);
  runs[1]?.resolve();
  await second;
});
