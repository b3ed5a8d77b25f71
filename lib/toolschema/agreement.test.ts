import { fromJsonString } from "@bufbuild/protobuf";
import { createValidator } from "@bufbuild/protovalidate";
import { Ajv2020 } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { describe, expect, it } from "vitest";
import { KEYWORDS } from "../tool/keywords.ts";
import { AGREEMENT, DIFFERENCES } from "./agreement.testdata.ts";
import { BUILT_IN_SERVICES, toolMethods } from "./built-in.ts";
import { toolByName } from "./catalog-file.ts";

const ajv = new Ajv2020({ strict: true, allowUnionTypes: true });
ajv.addVocabulary(Object.values(KEYWORDS));
formats.default(ajv);
const validator = createValidator();
const methods = toolMethods(BUILT_IN_SERVICES);

function schemaAccepts(tool: string, input: string): boolean {
  const schema = toolByName(tool)?.inputSchema;
  if (!schema) throw new Error(`no tool ${tool}`);
  return ajv.validate(schema, JSON.parse(input));
}

function serverAccepts(tool: string, input: string): boolean {
  const schema = methods.get(tool)?.input;
  if (!schema) throw new Error(`no tool ${tool}`);
  try {
    return validator.validate(schema, fromJsonString(schema, input)).kind === "valid";
  } catch {
    return false;
  }
}

describe("the generated schema and the server", () => {
  it.each(AGREEMENT.filter((row) => row.expected === "accept"))("both accept $tool $input", ({ tool, input }) => {
    expect({ schema: schemaAccepts(tool, input), server: serverAccepts(tool, input) }).toEqual({
      schema: true,
      server: true,
    });
  });

  it.each(AGREEMENT.filter((row) => row.expected === "refuse"))("both refuse $tool $input", ({ tool, input }) => {
    expect({ schema: schemaAccepts(tool, input), server: serverAccepts(tool, input) }).toEqual({
      schema: false,
      server: false,
    });
  });

  it.each(AGREEMENT.filter((row) => row.expected in DIFFERENCES))("differ on $tool $input: $expected", (row) => {
    const who = DIFFERENCES[row.expected as keyof typeof DIFFERENCES];
    expect({ schema: schemaAccepts(row.tool, row.input), server: serverAccepts(row.tool, row.input) }).toEqual({
      schema: who === "schema",
      server: who === "server",
    });
  });

  it("are compared on at least 60 inputs of at least 10 tools", () => {
    expect(AGREEMENT.length).toBeGreaterThanOrEqual(60);
    expect(new Set(AGREEMENT.map((row) => row.tool)).size).toBeGreaterThanOrEqual(10);
  });
});
