import { create, type JsonObject, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { type AnnouncedToolSchema, AnnouncedToolsSchema } from "../../gen/ts/reeve/device/v1/manifest_pb.ts";
import { Scope } from "../../gen/ts/reeve/options/v1/tool_pb.ts";
import { blockReason } from "../command/tools.ts";
import { canonicalArguments } from "../tool/arguments.ts";
import { describeAnnounced } from "./announced.ts";
import { readAnnouncements } from "./announcements.ts";
import { schemaDigest } from "./digest.ts";

type ToolInit = MessageInitShape<typeof AnnouncedToolSchema>;

const SCHEMA: JsonObject = {
  type: "object",
  properties: {
    city: { type: "string", minLength: 1, description: "Where." },
    days: { type: "integer", minimum: 1, maximum: 7 },
    token: { type: "string", writeOnly: true },
    limitMs: { type: "integer", "x-reeve-deadline": true },
    places: { type: "array", items: { $ref: "#/$defs/place" } },
  },
  required: ["city"],
  additionalProperties: false,
  $defs: { place: { type: "object", properties: { name: { type: "string", pattern: "^[a-z]+$" } } } },
};

function announcement(...tools: ToolInit[]) {
  return create(AnnouncedToolsSchema, { name: "weather", definition: { case: "schemas", value: { tools } } });
}

function tool(inputSchema: JsonObject | string = SCHEMA, more: ToolInit = {}): ToolInit {
  const text = typeof inputSchema === "string" ? inputSchema : JSON.stringify(inputSchema);
  return {
    name: "now",
    description: "The weather of a city.",
    scope: Scope.USER,
    readOnly: true,
    inputSchema: text,
    ...more,
  };
}

function describeOne(init: ToolInit = tool()) {
  const { tools, unavailable } = describeAnnounced(announcement(init));
  return tools[0] ?? unavailable[0]?.why;
}

function taken(init: ToolInit = tool()) {
  const described = describeOne(init);
  if (typeof described !== "object") throw new Error(described);
  return described;
}

function problemOf(params: JsonObject, inputSchema: JsonObject = SCHEMA): string | undefined {
  const parsed = taken(tool(inputSchema)).codec.parse(params);
  return parsed.ok ? undefined : parsed.problems.map(({ field, rule }) => `${field} ${rule}`).join();
}

describe("a tool that a JSON Schema defines", () => {
  test("has the contract of any other, under the name of its source", () => {
    const { spec } = taken(tool(SCHEMA, { defaultTimeout: durationFromMs(5000) }));
    expect(spec).toMatchObject({
      name: "weather:now",
      capabilities: ["weather:now"],
      method: "",
      scope: "user",
      annotations: { readOnly: true, idempotent: true, destructive: false },
      defaultTimeoutMs: 5000,
      inputSchema: SCHEMA,
    });
    expect(spec.schemaDigest).toBe(schemaDigest(SCHEMA));
  });

  test("has one form of its arguments, and its own deadline", () => {
    const one = canonicalArguments(taken(), { limitMs: 70, city: "Bern" });
    expect(Buffer.from(one.bytes).toString()).toBe('{"city":"Bern","limitMs":70}');
    expect(one.timeoutMs).toBe(70);
  });

  test.each<[string, JsonObject, string]>([
    ["a missing field", {}, "city required"],
    ["an unknown field", { city: "a", planet: "b" }, "planet unknown_field"],
    ["a wrong type", { city: 1 }, "city type"],
    ["a value over its limit", { city: "a", days: 8 }, "days maximum"],
    ["a wrong value deep in it", { city: "a", places: [{}, { name: "B" }] }, "places[1].name pattern"],
    ["a field that only the prototype has", { city: "a", constructor: 1 }, "constructor unknown_field"],
  ])("names %s", (_, params, problem) => {
    expect(problemOf(params)).toBe(problem);
  });

  test("that runs commands is under the blocklist", () => {
    const argv = { type: "array", items: { type: "string" }, "x-reeve-command": "argv" };
    const steps = { type: "array", items: { type: "object", properties: { argv } } };
    const { spec } = taken(tool({ type: "object", properties: { steps } }));
    expect(blockReason(spec.inputSchema, { steps: [{ argv: ["ls"] }, { argv: ["rm", "-rf", "/"] }] })).toBeDefined();
    expect(blockReason(spec.inputSchema, { steps: [{ argv: ["ls"] }] })).toBeUndefined();
  });

  test("takes time linear in the text for a pattern that would backtrack", () => {
    const schema = { type: "object", properties: { text: { type: "string", pattern: "^(a+)+$" } } };
    expect(problemOf({ text: `${"a".repeat(50_000)}b` }, schema)).toBe("text pattern");
  });
});

describe("what is hostile", () => {
  const doubling = Object.fromEntries(
    Array.from({ length: 30 }, (_, at) => [
      `d${at}`,
      { allOf: [{ $ref: `#/$defs/d${at + 1}` }, { $ref: `#/$defs/d${at + 1}` }] },
    ]),
  );

  test.each<[string, JsonObject | string, RegExp]>([
    ["no JSON", "{", /./],
    ["no object", { type: "string" }, /not of an object/],
    ["an unknown keyword", { type: "object", unevaluatedProperties: false }, /unevaluatedProperties/],
    ["a quadratic keyword", { type: "object", properties: { a: { type: "array", uniqueItems: true } } }, /uniqueItems/],
    ["a reference elsewhere", { type: "object", properties: { a: { $ref: "https://example.com/a" } } }, /own \$defs/],
    [
      "a reference to itself",
      { type: "object", properties: { a: { $ref: "#/$defs/a" } }, $defs: { a: { $ref: "#/$defs/a" } } },
      /back to itself/,
    ],
    [
      "exponential references",
      { type: "object", allOf: [{ $ref: "#/$defs/d0" }], $defs: { ...doubling, d30: {} } },
      /schema_nodes/,
    ],
    [
      "a pattern that is too long",
      { type: "object", properties: { a: { pattern: "a".repeat(1001) } } },
      /pattern_size/,
    ],
    ["a schema that is too large", { type: "object", description: "x".repeat(70_000) }, /schema_size/],
    [
      "a schema that is too deep",
      JSON.parse(`${'{"type":"object","not":'.repeat(30)}{}${"}".repeat(30)}`) as JsonObject,
      /schema_depth/,
    ],
    ["a key twice", '{"type":"object","type":"object"}', /./],
  ])("is left out with why: %s", (_, schema, why) => {
    expect(describeOne(tool(schema))).toMatch(why);
  });

  test.each<[string, ToolInit, RegExp]>([
    ["a bad name", { name: "A b" }, /no tool name/],
    ["a capability of another source", { capabilities: ["exec:x"] }, /capability/],
    ["no scope", { scope: Scope.UNSPECIFIED }, /scope/],
    ["a contradiction", { readOnly: true, destructive: true }, /destructive/],
  ])("is left out with why: %s", (_, more, why) => {
    expect(describeOne(tool(SCHEMA, more))).toMatch(why);
  });

  test("is refused as a whole where it has too many tools, and leaves the others alone", () => {
    const many = announcement(...Array.from({ length: 65 }, (_, at) => tool(SCHEMA, { name: `t${at}` })));
    const good = create(AnnouncedToolsSchema, { ...announcement(tool()), name: "good" });
    const read = readAnnouncements([many, create(AnnouncedToolsSchema, { name: "empty" }), good]);
    expect(read.refused.map(({ name, limit }) => [name, limit])).toEqual([
      ["weather", "tools"],
      ["empty", undefined],
    ]);
    expect(read.tools.map(({ spec }) => spec.name)).toEqual(["good:now"]);
  });

  test("costs no more than a number of steps, whatever it is given", () => {
    const anyOf = Array.from({ length: 400 }, (_, at) => ({ const: at }));
    const schema = { type: "object", properties: { all: { type: "array", items: { anyOf } } } };
    expect(problemOf({ all: Array.from({ length: 100_000 }, () => -1) }, schema)).toBe(" size");
  });
});
