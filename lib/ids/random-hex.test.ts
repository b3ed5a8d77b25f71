import { expect, it } from "vitest";
import { createRandomHex } from "./random-hex.ts";

it("never gives the same bytes twice, also across refills", () => {
  const randomHex = createRandomHex();
  const given = Array.from({ length: 2000 }, () => randomHex(16));
  expect(new Set(given).size).toBe(2000);
  for (const text of given) expect(text).toMatch(/^[0-9a-f]{32}$/);
});

it("refuses to give more than it can have at once", () => {
  expect(() => createRandomHex()(5000)).toThrow(RangeError);
});
