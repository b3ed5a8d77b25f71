import { expect, test } from "vitest";
import { brokenBounds, reportText } from "./report.ts";
import { runHostile } from "./run-hostile.ts";

/** Small, and without bounds on time: `npm run fuzz:wire` has those. */
const MUTANTS = 4_000;
const STRANGERS = 400;

/** No run of this size may need more than that, in megabytes: what is kept for each mutant would show. */
const MOST_MEMORY_MB = 700;

test("hostile clients on every port end nothing, and an honest caller is served all the while", async () => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  const report = await runHostile({ mutants: MUTANTS, seed, crowd: STRANGERS });
  const context = `seed ${seed}\n${reportText(report)}\n${report.log}`;
  expect(brokenBounds(report, { timed: false }), context).toEqual([]);
  expect(report.mutants).toBeGreaterThanOrEqual(MUTANTS);
  expect(Math.max(0, ...report.rssMb), context).toBeLessThan(MOST_MEMORY_MB);
  expect(report.crowd.connected, context).toBe(STRANGERS);
});
