import type { JsonObject, JsonValue } from "@bufbuild/protobuf";

/** What strict mode takes of JSON Schema in any case. */
const TAKEN: ReadonlySet<string> = new Set([
  "additionalProperties",
  "const",
  "description",
  "enum",
  "items",
  "properties",
  "required",
  "title",
  "type",
]);

/** What can be left out: it only narrows a value, and the gate validates with the complete schema. */
const LEFT_OUT: ReadonlySet<string> = new Set([
  "format",
  "maxItems",
  "maxLength",
  "maximum",
  "minItems",
  "minLength",
  "minimum",
  "pattern",
]);

/**
 * A tool's input schema as strict mode takes it: every object closed and every property required
 * (https://platform.openai.com/docs/guides/structured-outputs#supported-schemas). Undefined for any other schema, because one
 * tool that strict mode does not take fails the request. Optional properties are not rewritten to nullable ones: what the
 * model then writes would have to be changed before it is sent.
 */
export function strictSchema(schema: JsonObject): JsonObject | undefined {
  const kept: JsonObject = {};
  for (const [keyword, value] of Object.entries(schema)) {
    if (TAKEN.has(keyword)) kept[keyword] = value;
    else if (!LEFT_OUT.has(keyword)) return undefined;
  }
  if (kept.type === "array")
    return isObject(kept.items) ? withPart(kept, "items", strictSchema(kept.items)) : undefined;
  if (kept.type === "object") return withPart(kept, "properties", strictProperties(kept));
  return typeof kept.type === "string" ? kept : undefined;
}

function strictProperties({
  properties = {},
  required = [],
  additionalProperties,
}: JsonObject): JsonObject | undefined {
  if (additionalProperties !== false || !isObject(properties) || !Array.isArray(required)) return undefined;
  const strict: [string, JsonValue][] = [];
  for (const [name, property] of Object.entries(properties)) {
    const value = isObject(property) && required.includes(name) ? strictSchema(property) : undefined;
    if (value === undefined) return undefined;
    strict.push([name, value]);
  }
  return Object.fromEntries(strict);
}

function withPart(schema: JsonObject, keyword: string, part: JsonObject | undefined): JsonObject | undefined {
  return part === undefined ? undefined : { ...schema, [keyword]: part };
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
