import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { parseProcStat } from "./proc-stat.ts";

it("reads a name that holds parentheses and spaces", () => {
  const line = "42 (a) R (b c) S 7 40 39 0 -1 4194560 1 2 3 4 50 60 0 0 20 0 1 0 12345 1000 200";
  expect(parseProcStat(line)).toEqual({
    pid: 42,
    name: "a) R (b c",
    state: "S",
    ppid: 7,
    group: 40,
    session: 39,
    cpuTicks: 110,
    startTicks: 12345,
  });
});

it("refuses other text", () => {
  expect(parseProcStat("")).toBeUndefined();
  expect(parseProcStat("1 (x) S 2")).toBeUndefined();
});

it.runIf(process.platform === "linux")("reads the kernel's own text", () => {
  const stat = parseProcStat(readFileSync("/proc/self/stat", "latin1"));
  expect(stat).toMatchObject({ pid: process.pid, ppid: process.ppid });
});
