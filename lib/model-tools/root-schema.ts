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
  return { ...rest, type: "object" };
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

function objectOf(value: JsonValue | undefined): JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
}
