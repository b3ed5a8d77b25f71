import type { JsonValue } from "@bufbuild/protobuf";
import { type JsonSchema, memberOf, schemaAt } from "../tool/json-schema.ts";
import { KEYWORDS } from "../tool/keywords.ts";
import { createMeter, type Meter } from "./limits.ts";
import { assertPattern } from "./unknown-rules.ts";

/** Keywords that hold one schema. */
const ONE = new Set(["additionalProperties", "items", "not", "if", "then", "else"]);
/** Keywords that hold a list of schemas. */
const LISTS = new Set(["allOf", "anyOf", "oneOf", "prefixItems"]);
/** Keywords that hold schemas by name. */
const MAPS = new Set(["properties", "$defs"]);
/** Keywords that hold values. The values of enum and const are compared with the input, so they count. */
const COMPARED = new Set(["enum", "const"]);
/** All other keywords. uniqueItems is not among them: it takes time quadratic in the input. */
const OTHERS = new Set([
  ...["type", "required", "pattern", "minLength", "maxLength", "minItems", "maxItems", "minProperties"],
  ...["maxProperties", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "dependentRequired"],
  ...["$schema", "$comment", "title", "description", "default", "examples", "format", "deprecated", "readOnly"],
  ...["writeOnly", "contentEncoding", "contentMediaType", ...Object.values(KEYWORDS)],
]);

/**
 * Checks a JSON Schema that another party wrote, before it is compiled: only keywords that are known, references only to its own
 * definitions and never back to themselves, an object at the root. Returns how many schemas it is made of, each `$ref`
 * counted as what it stands for, which bounds what checking an input costs. Throws LimitExceeded, or an Error that says what
 * is wrong.
 */
export function checkSchema(schema: JsonSchema): number {
  if (schema.type !== "object") throw new Error("the schema of its input is not of an object");
  const meter = createMeter("schema_nodes");
  visit(schema, { root: schema, meter, references: [] });
  return meter.sum;
}

interface Visit {
  root: JsonSchema;
  meter: Meter;
  /** The references that led here. */
  references: readonly string[];
}

function visit(value: JsonValue | undefined, at: Visit): void {
  at.meter.add(1);
  if (typeof value === "boolean") return;
  const schema = schemaAt(value);
  if (schema === undefined) throw new Error("a schema of its input is no object");
  for (const [keyword, inner] of Object.entries(schema)) visitKeyword(keyword, inner, at);
}

function visitKeyword(keyword: string, value: JsonValue, at: Visit): void {
  if (keyword === "$ref") visitReference(value, at);
  else if (ONE.has(keyword)) visit(value, at);
  else if (LISTS.has(keyword)) for (const one of Array.isArray(value) ? value : [value]) visit(one, at);
  else if (MAPS.has(keyword)) visitMap(value, at);
  else if (COMPARED.has(keyword)) at.meter.add(countValues(value));
  else if (!OTHERS.has(keyword))
    throw new Error(`its schema has the keyword ${keyword.slice(0, 40)}, which is not taken`);
  if (keyword === "pattern" && typeof value === "string") assertPattern(value);
}

function visitMap(value: JsonValue, at: Visit): void {
  for (const [name, one] of Object.entries(schemaAt(value) ?? {})) {
    if (name === "__proto__") throw new Error('"__proto__" is no name for a field');
    visit(one, at);
  }
}

function visitReference(value: JsonValue, { root, meter, references }: Visit): void {
  const name = typeof value === "string" ? /^#\/\$defs\/([^/~%]+)$/.exec(value)?.[1] : undefined;
  const target = name === undefined ? undefined : memberOf(schemaAt(root.$defs), name);
  if (name === undefined || target === undefined) throw new Error("its schema refers to what is not in its own $defs");
  if (references.includes(name)) throw new Error("its schema refers back to itself, which is not taken");
  visit(target, { root, meter, references: [...references, name] });
}

function countValues(value: JsonValue): number {
  if (typeof value !== "object" || value === null) return 1;
  return Object.values(value).reduce((sum: number, one) => sum + countValues(one), 1);
}
