import type { JsonObject } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { loadCatalog } from "../../lib/toolschema/catalog-file.ts";
import { takenNames } from "../call/run-options.ts";
import { deriveFlags, kebabCase } from "./derive.ts";
import type { Flag } from "./flag.ts";
import { helpEntry } from "./help.ts";

const { tools } = loadCatalog();

function flagsOf(name: string): Flag[] {
  const tool = tools.find((one) => one.name === name);
  if (tool === undefined) throw new Error(`no tool ${name}`);
  return deriveFlags(tool.inputSchema, takenNames);
}

function property(schema: JsonObject): Flag | undefined {
  return deriveFlags({ type: "object", properties: { it: schema } })[0];
}

describe("the flags of the built-in tools", () => {
  it.each(tools.map((tool) => [tool.name, tool.inputSchema] as const))("%s has one for each property", (_, schema) => {
    const flags = deriveFlags(schema, takenNames);
    expect(flags.map(({ field }) => field)).toEqual(Object.keys(schema.properties ?? {}));
    expect(flags.filter(({ required }) => required).map(({ field }) => field)).toEqual(schema.required ?? []);
    expect(new Set(flags.map(({ name }) => name)).size).toBe(flags.length);
    for (const { name, value, description } of flags) {
      expect(name).toMatch(/^[a-z][a-z0-9-]*$/);
      expect(takenNames.has(name)).toBe(false);
      // Each property of a built-in tool has a simple form, and words of its own.
      expect(value.kind).not.toBe("json");
      expect(description).not.toBe("");
    }
  });

  it.each([
    ["exec", ["--argv TEXT ...", "--cwd TEXT", "--stdin TEXT", "--env KEY=TEXT ...", "--timeout-ms INTEGER"]],
    ["docker.list", ["--[no-]all", "--max-results INTEGER"]],
    [
      "fs.read",
      [
        "--path TEXT",
        "--offset INTEGER",
        "--max-bytes INTEGER",
        "--encoding utf8|utf16le|utf16be|latin1",
        "--[no-]from-end",
        "--first-line INTEGER",
        "--max-lines INTEGER",
      ],
    ],
    [
      "fs.write",
      [
        "--path TEXT",
        "--text TEXT",
        "--data BASE64|@FILE",
        "--mode replace|create|append",
        "--[no-]create-folders",
        "--permissions INTEGER",
      ],
    ],
    ["proc.kill", ["--pid INTEGER", "--signal term|kill|int|hup", "--wait-ms INTEGER"]],
    ["pkg.install", ["--packages TEXT ...", "--[no-]dry-run"]],
  ])("%s reads %j", (name, terms) => {
    expect(flagsOf(name).map((flag) => helpEntry(flag).term)).toEqual(terms);
  });
});

describe("a property", () => {
  it.each([
    [{ type: "string" }, "one", { kind: "text" }],
    [{ type: "string", contentEncoding: "base64" }, "one", { kind: "bytes" }],
    [{ type: "integer" }, "one", { kind: "integer", orText: false }],
    [{ type: ["integer", "string"] }, "one", { kind: "integer", orText: true }],
    [{ type: "number" }, "one", { kind: "number" }],
    [{ type: "boolean" }, "one", { kind: "switch" }],
    [{ type: "array", items: { type: "integer" } }, "list", { kind: "integer", orText: false }],
    [{ type: "array", items: { type: "object" } }, "list", { kind: "json" }],
    [{ type: "object", additionalProperties: { type: "number" } }, "map", { kind: "number" }],
    [{ type: "object", additionalProperties: { type: "object" } }, "one", { kind: "json" }],
    [{ type: "object", properties: { a: { type: "string" } } }, "one", { kind: "json" }],
    [{}, "one", { kind: "json" }],
  ])("of the schema %j is a %s of %j", (schema, shape, value) => {
    expect(property(schema)).toMatchObject({ name: "it", shape, value });
  });

  it("behind a reference is what it refers to", () => {
    const schema = {
      type: "object",
      properties: { it: { $ref: "#/$defs/Size" } },
      $defs: { Size: { type: "integer" } },
    };
    expect(deriveFlags(schema)[0]?.value).toEqual({ kind: "integer", orText: false });
  });

  it("that refers to itself is JSON", () => {
    const schema = { type: "object", properties: { it: { $ref: "#/$defs/A" } }, $defs: { A: { $ref: "#/$defs/A" } } };
    expect(deriveFlags(schema)[0]?.value).toEqual({ kind: "json" });
  });

  it.each([
    [
      ["WRITE_MODE_REPLACE", "WRITE_MODE_CREATE"],
      ["replace", "create"],
    ],
    [
      ["A_B", "A_B_C"],
      ["b", "b_c"],
    ],
    [["ONLY_ONE"], ["only_one"]],
    [
      ["left", "right"],
      ["left", "right"],
    ],
  ])("with the values %j is typed as %j", (values, shorts) => {
    const flag = property({ type: "string", enum: values });
    expect(flag?.value).toEqual({ kind: "choice", choices: values.map((value, i) => ({ value, short: shorts[i] })) });
  });
});

describe("a flag's name", () => {
  it.each([
    ["timeoutMs", "timeout-ms"],
    ["snake_case", "snake-case"],
    ["URL", "url"],
    ["ipv4Address", "ipv4-address"],
  ])("%s is --%s", (field, name) => {
    expect(kebabCase(field)).toBe(name);
  });

  it.each([
    ["help", "arg-help"],
    ["json", "arg-json"],
    ["token", "arg-token"],
    ["wait", "arg-wait"],
    ["noWait", "arg-no-wait"],
  ])("that means something else gets a prefix: %s", (field, name) => {
    const [flag] = deriveFlags({ properties: { [field]: { type: "boolean" } } }, takenNames);
    expect(flag?.name).toBe(name);
  });

  it("is never used twice, a negation included", () => {
    const schema = {
      properties: { noCache: { type: "boolean" }, cache: { type: "boolean" }, no_cache: { type: "boolean" } },
    };
    const names = deriveFlags(schema).map(({ name }) => name);
    expect(new Set(names).size).toBe(3);
    expect(names).not.toContain("cache");
  });
});
