import type { JsonObject, JsonValue } from "@bufbuild/protobuf";

/** A schema whose root every provider takes. */
export interface RootObjectSchema extends JsonObject {
  type: "object";
}

/**
 * A tool's input schema with a root that Anthropic takes: an object without oneOf, allOf, anyOf or $ref (a request with
 * such a root is refused whole). The model learns less exactly what is lost: the gate validates with the complete
 * schema.
 */
export function rootObjectSchema(schema: JsonObject): RootObjectSchema {
  const {
    $schema: _dialect,
    $id: _id,
    $ref: _ref,
    oneOf: _one,
    allOf: _all,
    anyOf: _any,
    ...rest
  } = resolveRoot(schema);
  return { ...withoutMarks(rest), type: "object" };
}

const DEFINITION = /^#\/\$defs\/([^/~%]+)$/u;

/** A root that only refers to one of its own definitions is that definition, with the other definitions beside it. */
function resolveRoot(schema: JsonObject): JsonObject {
  const name = typeof schema.$ref === "string" ? DEFINITION.exec(schema.$ref)?.[1] : undefined;
  if (name === undefined) return schema;
  const definitions = objectOf(schema.$defs);
  const definition = Object.hasOwn(definitions, name) ? objectOf(definitions[name]) : {};
  return { ...definition, ...schema };
}

/** Without the keywords that are no JSON Schema: they are for the gate, and a provider may refuse them. */
export function withoutMarks(schema: JsonObject): JsonObject {
  const entries = Object.entries(schema)
    .filter(([keyword]) => !keyword.startsWith("x-reeve-"))
    .map(([keyword, value]): [string, JsonValue] => [keyword, withoutMarksIn(value)]);
  return Object.fromEntries(entries);
}

function withoutMarksIn(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(withoutMarksIn);
  return typeof value === "object" && value !== null ? withoutMarks(value) : value;
}

function objectOf(value: JsonValue | undefined): JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
}
