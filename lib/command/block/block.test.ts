import { describe, expect, it } from "vitest";
import { BLOCK_RULES, blockedText } from "./block.ts";

describe.each(BLOCK_RULES)("$name", (rule) => {
  it.each(rule.match)("refuses %j", (text) => {
    expect(blockedText(text).map(({ name }) => name)).toContain(rule.name);
  });
  it.each(rule.not_match)("lets %j pass", (text) => {
    expect(blockedText(text)).toEqual([]);
  });
});
