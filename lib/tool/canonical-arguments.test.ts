import { describe, expect, it } from "vitest";
import { MAX_ARGUMENT_BYTES, readCanonicalArguments } from "./canonical-arguments.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

describe("readCanonicalArguments", () => {
  it.each(["{}", '{"a":1,"b":[true,null,"é"]}'])("takes %s", (text) => {
    expect(readCanonicalArguments(bytes(text))).toEqual({ ok: true, value: JSON.parse(text) });
  });

  it.each([
    ["white space", '{"a": 1}', "arguments", "rfc8785"],
    ["keys out of order", '{"b":1,"a":1}', "arguments", "rfc8785"],
    ["another form of a number", '{"a":1.0}', "arguments", "rfc8785"],
    ["an array", "[]", "arguments", "object"],
    ["a key twice", '{"a":1,"a":2}', "arguments.a", "duplicate_key"],
    ["what is no JSON", "{", "arguments", "syntax"],
    ["half a surrogate pair", '{"a":"\\ud800"}', "arguments.a", "surrogate"],
  ])("refuses %s", (_, text, field, rule) => {
    expect(readCanonicalArguments(bytes(text))).toMatchObject({ ok: false, field, rule });
  });

  it("refuses what is no UTF-8, too large or too deep", () => {
    expect(readCanonicalArguments(Uint8Array.of(0x22, 0xff, 0x22))).toMatchObject({ ok: false, rule: "utf8" });
    const large = bytes(`{"a":"${"x".repeat(MAX_ARGUMENT_BYTES)}"}`);
    expect(readCanonicalArguments(large)).toMatchObject({ ok: false, rule: "max_bytes" });
    const deep = bytes(`${'{"a":'.repeat(40)}1${"}".repeat(40)}`);
    expect(readCanonicalArguments(deep)).toMatchObject({ ok: false, rule: "max_depth" });
  });
});
