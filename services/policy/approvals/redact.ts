import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { JsonSchema } from "../../../lib/toolschema/json-schema.ts";

/** What stands in the place of a secret. */
export const REDACTED = "[redacted]";

/**
 * The arguments with every field that the tool's schema marks as secret (`writeOnly`) replaced. Follows properties, list
 * items, map values and `$ref` into `$defs`.
 */
export function redactSecretFields(args: JsonObject, schema: JsonSchema | undefined): JsonObject {
  if (!schema) return args;
  return redact(args, schema, schema) as JsonObject;
}

function redact(value: JsonValue, schema: JsonSchema, root: JsonSchema): JsonValue {
  const own = resolved(schema, root);
  if (own.writeOnly === true) return REDACTED;
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) {
    const items = schemaAt(own.items);
    return items ? value.map((item) => redact(item, items, root)) : value;
  }
  const properties = schemaAt(own.properties);
  const others = schemaAt(own.additionalProperties);
  const entries = Object.entries(value).map(([key, inner]): [string, JsonValue] => {
    const field = (properties && Object.hasOwn(properties, key) ? schemaAt(properties[key]) : undefined) ?? others;
    return [key, field ? redact(inner, field, root) : inner];
  });
  return Object.fromEntries(entries);
}

function resolved(schema: JsonSchema, root: JsonSchema): JsonSchema {
  const reference = typeof schema.$ref === "string" ? schema.$ref : undefined;
  if (reference === undefined) return schema;
  if (reference === "#") return root;
  const definition = schemaAt(schemaAt(root.$defs)?.[reference.replace("#/$defs/", "")]);
  return definition ? { ...definition, ...schema, $ref: "" } : schema;
}

function schemaAt(value: JsonValue | undefined): JsonSchema | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : undefined;
}
