import type { JsonValue } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { type JsonSchema, schemaAt } from "../tool/json-schema.ts";
import { commandPartOf, KEYWORDS } from "../tool/keywords.ts";
import { loadCatalog } from "./catalog-file.ts";

/** Names that a field with a part of a command would have. */
const COMMAND_NAME =
  /^(?:argv|args|arguments|cmd|command|commands|commandLine|script|shell|program|exec|stdin|env|environment|cwd|workDir)$/i;
/** Names that a field with a deadline would have. */
const DEADLINE_NAME = /^(?:timeout|timeoutMs|timeoutSeconds|deadline|deadlineMs)$/i;

/** All properties of a schema, at any depth, as "tool.path" with their schemas. */
function propertiesOf(path: string, value: JsonValue | undefined): [string, JsonSchema][] {
  if (Array.isArray(value)) return value.flatMap((one) => propertiesOf(path, one));
  const schema = schemaAt(value);
  if (schema === undefined) return [];
  const own = Object.entries(schemaAt(schema.properties) ?? {}).map(([name, field]): [string, JsonSchema] => [
    `${path}.${name}`,
    schemaAt(field) ?? {},
  ]);
  const inner = Object.entries(schema).flatMap(([keyword, one]) => propertiesOf(`${path}/${keyword}`, one));
  return [...own, ...inner];
}

const fields = loadCatalog().tools.flatMap(({ name, inputSchema }) => propertiesOf(name, inputSchema));
const lastName = (path: string): string => path.slice(path.lastIndexOf(".") + 1);

describe("every built-in tool", () => {
  test("marks each field that is named like a part of a command", () => {
    const named = fields.filter(([path]) => COMMAND_NAME.test(lastName(path)));
    expect(named.length).toBeGreaterThan(5);
    expect(named.filter(([, schema]) => commandPartOf(schema) === undefined).map(([path]) => path)).toEqual([]);
  });

  test("marks each field that is named like a deadline", () => {
    const named = fields.filter(([path]) => DEADLINE_NAME.test(lastName(path)));
    expect(named.length).toBeGreaterThan(2);
    expect(named.filter(([, schema]) => schema[KEYWORDS.deadline] !== true).map(([path]) => path)).toEqual([]);
  });

  test("marks nothing with a part that is not known", () => {
    const marked = fields.filter(([, schema]) => KEYWORDS.command in schema);
    expect(marked.filter(([, schema]) => commandPartOf(schema) === undefined)).toEqual([]);
  });
});
