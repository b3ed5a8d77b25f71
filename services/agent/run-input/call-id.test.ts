import { describe, expect, it } from "vitest";
import { callIdOf } from "./call-id.ts";

describe("a call's id", () => {
  it("is the same for the same use and another for any other", () => {
    expect(callIdOf("run-1", "toolu_1")).toBe(callIdOf("run-1", "toolu_1"));
    const ids = [
      callIdOf("run-1", "toolu_1"),
      callIdOf("run-1", "toolu_2"),
      callIdOf("run-2", "toolu_1"),
      callIdOf("a-b", "c"),
      callIdOf("a", "b-c"),
    ];
    expect(new Set(ids).size).toBe(ids.length);
  });

  it.each([
    ["run", "toolu_01D7FLrfh4GYq7yT1ULFeyMV"],
    ["2f1c1f6e-0e0b-4a53-a1a0-3f7f3a9a1a55", "x".repeat(500)],
    ["../../😀", "'; drop table calls"],
    ["", ""],
  ])("takes any ids (%s) and keeps to what the registry accepts", (run, use) => {
    expect(callIdOf(run, use)).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
  });
});
