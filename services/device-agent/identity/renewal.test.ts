import { expect, test } from "vitest";
import { renewAt, retryMs } from "./renewal.ts";

const MADE = Date.parse("2026-11-22T10:00:00Z");
const HOUR_MS = 3_600_000;
const day = { validFrom: new Date(MADE - 60_000).toISOString(), validTo: new Date(MADE + 24 * HOUR_MS).toISOString() };

test.each([
  [0.5, 12],
  [0, 9.6],
  [1, 14.4],
])("a day's certificate is renewed at its half, give or take a tenth of the day (%d)", (random, hours) => {
  expect((renewAt(day, random) - MADE) / HOUR_MS).toBeCloseTo(hours, 3);
});

test("the less time is left, the sooner it is tried again", () => {
  expect(retryMs(12 * HOUR_MS, 1)).toBe(60_000);
  expect(retryMs(60_000, 1)).toBe(6000);
  expect(retryMs(60_000, 0)).toBe(3000);
  expect(retryMs(0, 1)).toBe(100);
});
