import type { JsonObject, JsonValue } from "@bufbuild/protobuf";

/** What strict mode takes of JSON Schema at the least; anything else in a strict tool would fail the request. */
const KEYWORDS: ReadonlySet<string> = new Set([
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

/**
 * Whether a tool's input schema is one that strict mode takes as it is: every object closed and every property required
 * (https://platform.openai.com/docs/guides/structured-outputs#supported-schemas). A schema with optional properties is not
 * rewritten to nullable ones: what the model then writes would have to be changed before it is sent.
 */
export function fitsStrict(schema: JsonValue | undefined): boolean {
  if (!isObject(schema) || Object.keys(schema).some((keyword) => !KEYWORDS.has(keyword))) return false;
  if (schema.items !== undefined && !fitsStrict(schema.items)) return false;
  if (schema.type !== "object")
    return typeof schema.type === "string" && (schema.type !== "array" || "items" in schema);
  const properties = isObject(schema.properties) ? schema.properties : {};
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  return (
    schema.additionalProperties === false &&
    Object.entries(properties).every(([name, property]) => required.has(name) && fitsStrict(property))
  );
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
