import { createHash } from "node:crypto";
import type { DescFile, JsonValue } from "@bufbuild/protobuf";
import { Ajv2020 } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { describe, expect, it } from "vitest";
import { compileProtos } from "../../scripts/compile-proto.ts";
import type { JsonSchema } from "../tool/json-schema.ts";
import { KEYWORDS } from "../tool/keywords.ts";
import { BUILT_IN_SERVICES, toolMethods } from "./built-in.ts";
import { type CatalogResult, describeTools } from "./catalog.ts";
import { loadCatalog, toolByName } from "./catalog-file.ts";
import { schemaDigest } from "./digest.ts";

const { tools } = loadCatalog();
const schemas = tools.flatMap(({ name, inputSchema, outputSchema }) => [
  { name: `${name} input`, schema: inputSchema },
  { name: `${name} output`, schema: outputSchema },
]);

/** The tools of one sample file with these RPCs. */
async function describeSample(rpcs: string): Promise<CatalogResult> {
  const source = `syntax = "proto3";
package sample.v1;
import "reeve/options/v1/capability.proto";
import "reeve/options/v1/tool.proto";
// A request.
message Request {
  // A name.
  string name = 1;
}
// A response.
message Response {}
// Has a field without a comment.
message Bare { string name = 1; }
service Sample {
  option (reeve.options.v1.capability) = { name: "c" title: "C" description: "Do C." risk: RISK_LOW };
${rpcs}
}
`;
  const registry = await compileProtos({ "sample/v1/sample.proto": source });
  const files: DescFile[] = [...registry.files];
  return describeTools(
    files.filter((file) => file.name === "sample/v1/sample"),
    files,
  );
}

function option(name: string, scope = "SCOPE_USER", more = ""): string {
  return `option (reeve.options.v1.tool) = { name: "${name}" capabilities: ["c"] scope: ${scope} ${more} };`;
}

describe("the generated catalog", () => {
  it("is what the protos define now", async () => {
    const registry = await compileProtos();
    expect(describeTools(registry.files, registry.files)).toEqual({ catalog: loadCatalog(), problems: [] });
  });

  it("has a tool for every RPC of the built-in services, under the same name", () => {
    const methods = toolMethods(BUILT_IN_SERVICES);
    expect(tools.map((tool) => tool.name)).toEqual([...methods.keys()].sort());
    for (const tool of tools) {
      const method = methods.get(tool.name);
      expect(tool.method).toBe(`${method?.parent.typeName}/${method?.name}`);
    }
  });

  it("finds a tool by name", () => {
    expect(toolByName("fs.read")).toMatchObject({
      capabilities: ["fs.read"],
      scope: "user",
      method: "reeve.tools.v1.FileSystem/Read",
      annotations: { readOnly: true, destructive: false, idempotent: true, openWorld: false },
      defaultTimeoutMs: 60_000,
      anyProgram: [],
    });
    expect(toolByName("git.clone")).toMatchObject({ defaultTimeoutMs: 600_000, anyProgram: ["git"] });
    expect(toolByName("toString")).toBeUndefined();
  });

  it.each(schemas)("$name compiles in Ajv's strict mode", ({ schema }) => {
    const ajv = new Ajv2020({ strict: true, allowUnionTypes: true });
    ajv.addVocabulary(Object.values(KEYWORDS));
    formats.default(ajv);
    expect(() => ajv.compile(schema)).not.toThrow();
  });

  it.each(schemas)("$name keeps to what Anthropic's API takes at the root", ({ schema }) => {
    expect(schema.type).toBe("object");
    const keywords = [
      "$schema",
      "$comment",
      "$defs",
      "type",
      "description",
      "properties",
      "required",
      "additionalProperties",
    ];
    expect(keywords).toEqual(expect.arrayContaining(Object.keys(schema)));
  });

  it.each(schemas)("$name describes every field", ({ schema }) => {
    expect(propertiesWithin(schema).filter(([, property]) => !property.description)).toEqual([]);
  });

  it("binds each input schema by the digest of its canonical bytes", () => {
    for (const tool of tools) expect(tool.schemaDigest).toBe(schemaDigest(tool.inputSchema));
    const expected = createHash("sha256").update('{"a":1,"b":[2]}').digest("hex");
    expect(schemaDigest({ b: [2], a: 1 })).toBe(expected);
  });
});

describe("a tool's definition", () => {
  it("is read from the RPC's options and comment", async () => {
    const { catalog, problems } = await describeSample(`
      // Say hello to name. Sets no max_size.
      rpc Hello(Request) returns (Response) {
        option idempotency_level = IDEMPOTENT;
        ${option("hello.say", "SCOPE_SUDO", 'destructive: true open_world: true default_timeout: {nanos: 5000000} any_program: "sh"')}
      }
      rpc Plain(Bare) returns (Bare);`);
    expect(problems).toEqual([]);
    expect(catalog.tools).toMatchObject([
      {
        name: "hello.say",
        description: "Say hello to name. Sets no max_size.",
        scope: "sudo",
        method: "sample.v1.Sample/Hello",
        annotations: { readOnly: false, destructive: true, idempotent: true, openWorld: true },
        defaultTimeoutMs: 5,
        anyProgram: ["sh"],
      },
    ]);
  });

  it.each([
    [
      "a name that is used twice",
      `// A.\nrpc A(Request) returns (Response) { ${option("a")} }\n// B.\nrpc B(Request) returns (Response) { ${option("a")} }`,
      'sample.v1.Sample/A and sample.v1.Sample/B: the tool name "a" is used twice',
    ],
    [
      "a missing comment",
      `rpc A(Request) returns (Response) { ${option("a")} }`,
      "sample.v1.Sample/A: the RPC has no comment",
    ],
    [
      "a field without a comment",
      `// A.\nrpc A(Bare) returns (Response) { ${option("a")} }`,
      "sample.v1.Sample/A: sample.v1.Bare.name has no comment",
    ],
    [
      "a missing scope",
      `// A.\nrpc A(Request) returns (Response) { ${option("a", "SCOPE_UNSPECIFIED")} }`,
      "sample.v1.Sample/A: the scope is not stated or not known",
    ],
    [
      "a bad name",
      `// A.\nrpc A(Request) returns (Response) { ${option("A b")} }`,
      'sample.v1.Sample/A: "A b" is no tool name',
    ],
    [
      "a stream",
      `// A.\nrpc A(Request) returns (stream Response) { ${option("a")} }`,
      "sample.v1.Sample/A: a tool takes one request and gives one response, not a stream",
    ],
    [
      "a destructive read",
      `// A.\nrpc A(Request) returns (Response) { option idempotency_level = NO_SIDE_EFFECTS; ${option("a", "SCOPE_ANY", "destructive: true")} }`,
      "sample.v1.Sample/A: a tool without side effects cannot be destructive",
    ],
  ])("is refused for %s, naming the RPC", async (_, rpcs, problem) => {
    expect((await describeSample(rpcs)).problems).toEqual([problem]);
  });
});

/** Every property of a schema, however deep, with its path. */
function propertiesWithin(schema: JsonValue, path = ""): [string, JsonSchema][] {
  if (typeof schema !== "object" || schema === null) return [];
  if (Array.isArray(schema)) return schema.flatMap((item, i) => propertiesWithin(item, `${path}/${i}`));
  const { properties = {}, ...rest } = schema;
  const own = Object.entries(properties as Record<string, JsonSchema>);
  return [
    ...own.map(([name, property]): [string, JsonSchema] => [`${path}/${name}`, property]),
    ...own.flatMap(([name, property]) => propertiesWithin(property, `${path}/${name}`)),
    ...Object.entries(rest).flatMap(([name, value]) => propertiesWithin(value ?? null, `${path}/${name}`)),
  ];
}
