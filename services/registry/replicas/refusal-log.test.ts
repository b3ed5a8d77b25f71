import { expect, test } from "vitest";
import { createRefusalLog } from "./refusal-log.ts";

function scene() {
  const lines: string[] = [];
  const clock = { now: 0 };
  const warn = (fields: { why: string; count: number }) => lines.push(`${fields.why} ${fields.count}`);
  const log = createRefusalLog({ logger: { warn } as never, now: () => clock.now });
  return { lines, clock, log };
}

test("logs the first refusal for each reason at once, and the number of the others every ten seconds", () => {
  const { lines, clock, log } = scene();
  for (let n = 0; n < 1000; n++) log.note("forged");
  log.note("stale");
  log.flush();
  expect(lines).toEqual(["forged 1", "stale 1"]);
  clock.now = 10_000;
  log.flush();
  log.flush();
  expect(lines.slice(2)).toEqual(["forged 999"]);
});

test("counts what came meanwhile with the next one", () => {
  const { lines, clock, log } = scene();
  for (let n = 0; n < 3; n++) log.note("forged");
  clock.now = 10_000;
  log.note("forged");
  expect(lines).toEqual(["forged 1", "forged 3"]);
});
