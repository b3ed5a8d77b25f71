import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { checkStrictJson } from "../json/strict-json.ts";
import { canonicalJson } from "../sign/canonical.ts";

/** The most bytes of a call's arguments, as in the protos. */
export const MAX_ARGUMENT_BYTES = 3 * 1024 * 1024;

/** What keeps bytes from being arguments. */
export interface BadArguments {
  ok: false;
  /** Where: "arguments", or a path that begins so. */
  field: string;
  rule: string;
  message: string;
}

/** A call's arguments, or what is wrong. */
export type ReadArguments = { ok: true; value: JsonObject } | BadArguments;

/**
 * The arguments, where the bytes are exactly the canonical text (RFC 8785) of one JSON object. Anything else is refused,
 * because two spellings of the same arguments would have two digests, and two parsers could read one spelling
 * differently. Pure.
 */
export function readCanonicalArguments(bytes: Uint8Array): ReadArguments {
  const violation = checkStrictJson(bytes, { maxBytes: MAX_ARGUMENT_BYTES });
  if (violation !== undefined) return refused(violation.field, violation.rule, violation.message);
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
  const value: JsonValue = JSON.parse(text);
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return refused("", "object", "is no JSON object");
  }
  if (canonicalJson(value) !== text) return refused("", "rfc8785", "is not in canonical form (RFC 8785)");
  return { ok: true, value };
}

function refused(field: string, rule: string, message: string): BadArguments {
  return { ok: false, field: field === "" ? "arguments" : `arguments.${field}`, rule, message };
}
