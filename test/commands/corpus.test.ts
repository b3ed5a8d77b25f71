import { performance } from "node:perf_hooks";
import { expect, it } from "vitest";
import { analyzeText } from "../../lib/command/analyze.ts";
import { failingExamples } from "../../lib/command/verify.ts";
import { type Entry, readCorpus } from "./corpus.ts";

const block = readCorpus("block");
const ask = readCorpus("ask");
const allow = readCorpus("allow");

function texts(entries: readonly Entry[], wrong: (verdict: string) => boolean): string[] {
  return entries.filter(({ text }) => wrong(analyzeText(text).verdict)).map(({ kind, text }) => `${kind}: ${text}`);
}

it("has enough commands to show something", () => {
  expect(new Set(block.map(({ text }) => text)).size).toBeGreaterThanOrEqual(400);
  expect(new Set(ask.map(({ text }) => text)).size).toBeGreaterThanOrEqual(400);
  expect(new Set(allow.map(({ text }) => text)).size).toBeGreaterThanOrEqual(200);
});

it("has rules whose examples hold", () => expect(failingExamples()).toEqual([]));

it("blocks everything that destroys a system", () => {
  expect(texts(block, (verdict) => verdict !== "block")).toEqual([]);
});

it("lets nothing run that a person should see", () => {
  expect(texts(ask, (verdict) => verdict === "allow")).toEqual([]);
});

it("blocks nothing that a person may decide", () => {
  expect(texts(ask, (verdict) => verdict === "block")).toEqual([]);
  expect(texts(allow, (verdict) => verdict === "block")).toEqual([]);
});

it("lets what only looks run", () => {
  const asked = texts(allow, (verdict) => verdict !== "allow");
  expect(asked.length / allow.length, asked.join("\n")).toBeLessThanOrEqual(0.05);
});

it("takes little time for each", () => {
  // The best of five: what else the machine does at the moment is not what is measured.
  const times = [...block, ...ask, ...allow].map(({ text }) =>
    Math.min(...Array.from({ length: 5 }, () => timeOf(text))),
  );
  times.sort((a, b) => a - b);
  expect(times[Math.floor(times.length * 0.99)]).toBeLessThan(2);
  expect((times.length / times.reduce((sum, time) => sum + time, 0)) * 1000).toBeGreaterThan(5000);
});

function timeOf(text: string): number {
  const start = performance.now();
  analyzeText(text);
  return performance.now() - start;
}
