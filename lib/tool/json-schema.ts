import type { JsonObject, JsonValue } from "@bufbuild/protobuf";

/** A JSON Schema of the dialect below. Plain JSON: it can be sent as a google.protobuf.Struct as it is. */
export type JsonSchema = JsonObject;

/** The dialect of every schema here: https://json-schema.org/draft/2020-12 */
export const DIALECT = "https://json-schema.org/draft/2020-12/schema";

/** The schema with one more thing said that its keywords cannot say. */
export function withComment(schema: JsonSchema, text: string): JsonSchema {
  const before = schema.$comment;
  return { ...schema, $comment: typeof before === "string" ? `${before}; ${text}` : text };
}

/** The schema, and these as well. Keeps to one keyword each where it can, and uses allOf for the rest. */
export function withAll(schema: JsonSchema, more: readonly JsonSchema[]): JsonSchema {
  let merged = schema;
  for (const one of more) {
    const clash = Object.keys(one).some((keyword) => keyword in merged);
    if (clash) merged = { ...merged, allOf: [...listOf(merged.allOf), one] };
    else merged = { ...merged, ...one };
  }
  return merged;
}

/** How deep a value is nested: 0 for a number, 1 for an empty object. Walks level by level, so that no depth is too deep. */
export function jsonDepth(value: JsonValue): number {
  let depth = 0;
  for (let level = containers([value]); level.length > 0; depth++) level = containers(level.flatMap(Object.values));
  return depth;
}

function containers(values: readonly JsonValue[]): object[] {
  return values.filter((value) => typeof value === "object" && value !== null);
}

function listOf(value: JsonObject[string] | undefined): JsonObject[string][] {
  return Array.isArray(value) ? value : [];
}

/** The value as a schema; undefined for what is no object. */
export function schemaAt(value: JsonValue | undefined): JsonSchema | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : undefined;
}

/** A property's schema. */
export function memberOf(schemas: JsonSchema | undefined, key: string): JsonSchema | undefined {
  return schemas && Object.hasOwn(schemas, key) ? schemaAt(schemas[key]) : undefined;
}

/** The schema with what its `$ref` stands for; undefined where that is not in the root's `$defs`. */
export function resolved(schema: JsonSchema, root: JsonSchema): JsonSchema | undefined {
  const reference = typeof schema.$ref === "string" ? schema.$ref : undefined;
  if (reference === undefined) return schema;
  const definition = reference === "#" ? root : memberOf(schemaAt(root.$defs), reference.replace("#/$defs/", ""));
  return definition && { ...definition, ...schema };
}
