import { describe, expect, it } from "vitest";
import { cutText, keptArguments } from "./cut.ts";

const LIMITS = { texts: [4096, 200], total: 65_536 };

describe("cutText", () => {
  it("leaves what is short as it is", () => {
    expect(cutText("x".repeat(10), 10)).toEqual({ head: "x".repeat(10), tail: "", note: "" });
  });

  it("keeps the beginning and the end, and says how much is between", () => {
    const { head, tail, note } = cutText(`a${"x".repeat(98)}z`, 10);
    expect([head, tail]).toEqual(["axxxx", "xxxxz"]);
    expect(note).toMatch(/^\[cut: 90 of 100 characters are not shown here; SHA-256 of all [0-9a-f]{64}\]$/);
  });

  it.each([6, 7, 8, 9])("cuts no surrogate pair in two (limit %i)", (limit) => {
    const { head, tail } = cutText("🙂".repeat(20), limit);
    expect(`${head}${tail}`.isWellFormed()).toBe(true);
  });
});

describe("keptArguments", () => {
  it("are the arguments themselves where they are short", () => {
    const args = { argv: ["rm", "-r"], nested: { a: [1, null, true] } };
    expect(keptArguments(args, LIMITS)).toEqual(args);
  });

  it("are short enough for a list, with the end of each text", () => {
    const long = keptArguments({ text: `${"x".repeat(100_000)}END` }, LIMITS);
    expect(JSON.stringify(long).length).toBeLessThan(5000);
    expect(long.text).toMatch(/ x+END$/);
  });

  it("keep the ends of long lists, and where even that is too long a note", () => {
    const list = Array.from({ length: 50_000 }, (_, at) => at);
    const kept = keptArguments({ list }, LIMITS).list as unknown[];
    expect(kept.slice(0, 2)).toEqual([0, 1]);
    expect(kept.at(-1)).toBe(49_999);
    expect(kept).toContain("[cut: 49984 of 50000 items are not shown here]");
    const wide = Object.fromEntries(list.map((at) => [`key${at}`, at]));
    expect(keptArguments(wide, LIMITS).note).toMatch(/^\[cut: \d+ of \d+ characters are not shown here; /);
  });
});
