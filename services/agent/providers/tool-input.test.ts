import { describe, expect, it } from "vitest";
import { rootObjectSchema } from "../../../lib/model-tools/root-schema.ts";
import { parseToolInput } from "./tool-input.ts";

describe("a tool's input from a model", () => {
  it("is an object, empty for a use without arguments", () => {
    expect(parseToolInput('{"argv":["df","-k"]}')).toEqual({ kind: "json", value: { argv: ["df", "-k"] } });
    expect(parseToolInput("")).toEqual({ kind: "json", value: {} });
  });

  it.each([
    ["cut off inside a text", '{"command":"rm -rf /tmp/x'],
    ["cut off between keys", '{"command":"ls",'],
    ["not an object", '["ls"]'],
    ["null", "null"],
    ["a comment", '{"a":1} // done'],
    ["a key twice", '{"path":"/a","path":"/b"}'],
    ["a reserved key", '{"__proto__":{"admin":true}}'],
    ["a number beyond a double", '{"n":1e999}'],
    ["half a surrogate pair", '{"a":"\\ud800"}'],
    ["too deep", `${'{"a":'.repeat(5000)}1${"}".repeat(5000)}`],
    ["too large", `{"a":"${"x".repeat(5 * 1024 * 1024)}"}`],
  ])("is malformed, never mended: %s", (_, text) => {
    expect(parseToolInput(text)).toMatchObject({ kind: "malformed", problem: expect.any(String) });
  });
});

describe("an input schema for a provider", () => {
  it("loses what providers refuse at the root and keeps the rest", () => {
    const schema = {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      properties: { a: { oneOf: [{ type: "string" }, { type: "null" }] } },
      oneOf: [{ required: ["a"] }],
      allOf: [{}],
      anyOf: [{}],
      additionalProperties: false,
    };
    expect(rootObjectSchema(schema)).toEqual({
      type: "object",
      properties: { a: { oneOf: [{ type: "string" }, { type: "null" }] } },
      additionalProperties: false,
    });
  });

  it("gets an object at its root where it has none", () => {
    expect(rootObjectSchema({})).toEqual({ type: "object" });
    const $defs = { Node: { type: "object", properties: { next: { $ref: "#/$defs/Node" } } } };
    expect(rootObjectSchema({ $ref: "#/$defs/Node", $defs })).toEqual({ ...$defs.Node, $defs });
  });
});
