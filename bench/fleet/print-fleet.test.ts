import { expect, test } from "vitest";
import type { FleetFigures } from "./figures.ts";
import { fleetTable } from "./print-fleet.ts";

const CALLS = { calls: 100, callsPerSecond: 1000, p50Ms: 1.25, p99Ms: 9.96 };

function fleetOf(devices: number): FleetFigures {
  return {
    devices,
    database: "sqlite",
    enrolledPerSecond: 50,
    attachMs: 1500,
    rssBeforeBytes: 100 * 1024 * 1024,
    rssIdleBytes: 200 * 1024 * 1024,
    rssPerDeviceBytes: 100 * 1024,
    idleCpu: 0.25,
    idleDriversCpu: 0.5,
    unary: CALLS,
    stream: CALLS,
    registryUsPerCall: 500,
    recovery: { readyMs: 900, halfMs: 2000, most99Ms: 3000, allMs: 4000, dialsPerDevice: 1.5, failedCalls: 0 },
  };
}

test("prints a column for each size and a line for each cost", () => {
  const lines = fleetTable([fleetOf(10), fleetOf(1000)]).split("\n");
  expect(lines[0]).toMatch(/^devices +10 +1000$/);
  expect(lines).toContainEqual(expect.stringMatching(/^RSS per idle device, KiB +100 +100$/));
  expect(lines).toContainEqual(expect.stringMatching(/^ {2}all back, s +4\.00 +4\.00$/));
  expect(new Set(lines.map((line) => line.length)).size).toBe(1);
});
