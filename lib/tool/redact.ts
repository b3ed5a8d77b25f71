import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { type JsonSchema, memberOf, resolved, schemaAt } from "./json-schema.ts";

/** What stands in the place of a secret. */
export const REDACTED = "[redacted]";

/** What stands in the place of all arguments where it is not known which of them are secrets. */
export const NOT_SHOWN = "[not shown: the tool's schema is not known here]";

/**
 * The arguments with every field that the tool's schema marks as secret (`writeOnly`) replaced. Of a secret map the values
 * are replaced and the keys stay. Follows properties, list items, map values and `$ref` into `$defs`; a value whose reference
 * cannot be resolved is replaced as well. Pure.
 */
export function redactSecretFields(args: JsonObject, schema: JsonSchema): JsonObject {
  const shown = redact(args, schema, schema);
  return typeof shown === "object" && shown !== null && !Array.isArray(shown) ? shown : { note: REDACTED };
}

/**
 * Whether canonical arguments may hold a secret, found without parsing them: false only where no secret field's name is in
 * the bytes as a key. A name inside a text gives a true that costs one parse.
 */
export function mayHoldSecrets(canonical: Uint8Array, schema: JsonSchema): boolean {
  const keys = secretKeysOf(schema);
  if (keys === "unknown") return true;
  if (keys.length === 0) return false;
  const bytes = Buffer.from(canonical.buffer, canonical.byteOffset, canonical.byteLength);
  return keys.some((key) => bytes.includes(key));
}

function redact(value: JsonValue, schema: JsonSchema, root: JsonSchema): JsonValue {
  const own = resolved(schema, root);
  if (own === undefined) return REDACTED;
  if (own.writeOnly === true) return isMap(own) ? redactedMap(value) : REDACTED;
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

/** A map field: any key, one kind of value. */
function isMap({ properties, additionalProperties }: JsonSchema): boolean {
  return properties === undefined && schemaAt(additionalProperties) !== undefined;
}

function redactedMap(value: JsonValue): JsonValue {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return REDACTED;
  return Object.fromEntries(Object.keys(value).map((key) => [key, REDACTED]));
}

/** The keys of secret fields as they stand in canonical JSON; "unknown" where a secret has no name of its own. */
type SecretKeys = readonly Buffer[] | "unknown";

/** By schema: one object serves all calls of a tool. */
const secretKeys = new WeakMap<JsonSchema, SecretKeys>();

function secretKeysOf(schema: JsonSchema): SecretKeys {
  const known = secretKeys.get(schema);
  if (known !== undefined) return known;
  const names = new Set<string>();
  const found = collectNames(schema, names)
    ? [...names].map((name) => Buffer.from(`${JSON.stringify(name)}:`))
    : "unknown";
  secretKeys.set(schema, found);
  return found;
}

/** Adds the names of all secret fields. False for a secret that is no property, and for a reference out of `$defs`. */
function collectNames(schema: JsonSchema, names: Set<string>): boolean {
  if (typeof schema.$ref === "string" && !/^#(\/\$defs\/|$)/.test(schema.$ref)) return false;
  const named = Object.entries(schemaAt(schema.properties) ?? {});
  for (const [name, field] of named) if (schemaAt(field)?.writeOnly === true) names.add(name);
  const nameless = schemasIn([
    schema.items,
    schema.additionalProperties,
    ...Object.values(schemaAt(schema.$defs) ?? {}),
  ]);
  if (nameless.some(({ writeOnly }) => writeOnly === true)) return false;
  const fields = schemasIn(named.map(([, field]) => field));
  return [...nameless, ...fields].every((one) => collectNames(one, names));
}

function schemasIn(values: readonly (JsonValue | undefined)[]): JsonSchema[] {
  return values.map(schemaAt).filter((one) => one !== undefined);
}
