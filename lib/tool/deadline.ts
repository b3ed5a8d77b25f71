import type { JsonObject } from "@bufbuild/protobuf";
import { type JsonSchema, schemaAt } from "./json-schema.ts";
import { KEYWORDS } from "./keywords.ts";

/** The longest that a caller can let a call run, in milliseconds. */
const MAX_TIMEOUT_MS = 3_600_000;

/** By schema: one object serves all calls of a tool. */
const known = new WeakMap<JsonSchema, string | undefined>();

/**
 * The longest that the caller lets the call run, in milliseconds: what is in the property that the schema marks as the deadline.
 * 0 where the schema marks none, and where the arguments do not say.
 */
export function requestedTimeoutMs(schema: JsonSchema, args: JsonObject): number {
  const name = deadlineOf(schema);
  const timeoutMs = name === undefined ? 0 : args[name];
  if (typeof timeoutMs !== "number" || !Number.isInteger(timeoutMs)) return 0;
  return timeoutMs > 0 && timeoutMs <= MAX_TIMEOUT_MS ? timeoutMs : 0;
}

/** The property that a schema marks as the deadline. */
export function deadlineOf(schema: JsonSchema): string | undefined {
  if (known.has(schema)) return known.get(schema);
  const properties = Object.entries(schemaAt(schema.properties) ?? {});
  const name = properties.find(([, field]) => schemaAt(field)?.[KEYWORDS.deadline] === true)?.[0];
  known.set(schema, name);
  return name;
}
