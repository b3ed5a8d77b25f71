import { describe, expect, it } from "vitest";
import { analyzeText } from "../analyze.ts";
import { expandBraces } from "./braces.ts";

describe("the words of a word with braces", () => {
  it.each([
    ["a{b,c}d", ["abd", "acd"]],
    ["{1..4}", ["1", "2", "3", "4"]],
    ["{4..1..2}", ["4", "2"]],
    ["{08..11}", ["08", "09", "10", "11"]],
    ["{c..a}", ["c", "b", "a"]],
    ["{1..2}{x,y}", ["1x", "1y", "2x", "2y"]],
    ["'{a,b}'", ["'{a,b}'"]],
    ["{a}", ["{a}"]],
  ])("of %s", (text, words) => {
    expect(expandBraces(text, "whole")).toEqual(words);
  });

  it("are the first and the last numbers of a long range, where those are enough", () => {
    const ends = expandBraces("{1..20000..3}", "ends");
    expect([ends?.length, ends?.[0], ends?.[1], ends?.at(-1)]).toEqual([16, "1", "4", "19999"]);
    expect(expandBraces("{1..20000}", "whole")).toBeUndefined();
    expect(expandBraces("{1..16}{1..16}{1..2}", "ends")).toBeUndefined();
  });
});

it.each([
  ["for n in {1..20000}; do echo $n; done", "ask"],
  ["echo {1..20000}", "ask"],
  ["for n in {1..5000}; do rm -rf /; done", "block"],
  ["kill -9 {1..30000}", "block"],
])("analyzes %j with a long range", (text, verdict) => {
  expect(analyzeText(text).verdict).toBe(verdict);
});
