import { describe, expect, it } from "vitest";
import { analyzeText } from "../analyze.ts";
import { PROGRAM_RULES } from "./allow.ts";

describe.each(PROGRAM_RULES)("$program", (rule) => {
  it.each(rule.match)("allows %j", (text) => {
    expect(analyzeText(text)).toMatchObject({ verdict: "allow" });
  });
  it.each(rule.not_match)("does not allow %j", (text) => {
    expect(analyzeText(text).verdict).not.toBe("allow");
  });
});

it("has each program once", () => {
  const names = PROGRAM_RULES.flatMap((rule) => rule.program.split(" "));
  expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([]);
});
