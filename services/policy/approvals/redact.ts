import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { JsonSchema } from "../../../lib/toolschema/json-schema.ts";

/** What stands in the place of a secret. */
const REDACTED = "[redacted]";

/** What stands in the place of all arguments where nobody knows which of them are secrets. */
export const NOT_SHOWN = "[not shown: the tool's schema is not known here]";

/**
 * The arguments with every field that the tool's schema marks as secret (`writeOnly`) replaced. Follows properties, list
 * items, map values and `$ref` into `$defs`; what a reference leads nowhere for is replaced as well.
 */
export function redactSecretFields(args: JsonObject, schema: JsonSchema): JsonObject {
  const shown = redact(args, schema, schema);
  return typeof shown === "object" && shown !== null && !Array.isArray(shown) ? shown : { note: REDACTED };
}

function redact(value: JsonValue, schema: JsonSchema, root: JsonSchema): JsonValue {
  const own = resolved(schema, root);
  if (own === undefined || own.writeOnly === true) return REDACTED;
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) {
    const items = schemaAt(own.items);
    return items ? value.map((item) => redact(item, items, root)) : value;
  }
  const properties = schemaAt(own.properties);
  const others = schemaAt(own.additionalProperties);
  const entries = Object.entries(value).map(([key, inner]): [string, JsonValue] => {
    const field = memberOf(properties, key) ?? others;
    return [key, field ? redact(inner, field, root) : inner];
  });
  return Object.fromEntries(entries);
}

function resolved(schema: JsonSchema, root: JsonSchema): JsonSchema | undefined {
  const reference = typeof schema.$ref === "string" ? schema.$ref : undefined;
  if (reference === undefined) return schema;
  const definition = reference === "#" ? root : memberOf(schemaAt(root.$defs), reference.replace("#/$defs/", ""));
  return definition && { ...definition, ...schema };
}

function memberOf(schemas: JsonSchema | undefined, key: string): JsonSchema | undefined {
  return schemas && Object.hasOwn(schemas, key) ? schemaAt(schemas[key]) : undefined;
}

function schemaAt(value: JsonValue | undefined): JsonSchema | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : undefined;
}
