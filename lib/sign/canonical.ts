import { hash } from "node:crypto";
import type { JsonValue } from "@bufbuild/protobuf";
import canonicalize from "canonicalize";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../fault/fault.ts";

/**
 * The one text of a JSON value: no white space, keys in order of UTF-16 code units, numbers as ECMAScript writes them
 * (RFC 8785). Two values have the same text exactly where they are the same JSON value.
 * Throws ERROR_REASON_INVALID_INPUT for what RFC 8785 has no text for: lone surrogates, NaN, infinities, cycles.
 */
export function canonicalJson(value: JsonValue): string {
  const text = textOf(value);
  if (text === undefined) throw notCanonical(undefined);
  return text;
}

/** SHA-256 in 64 lower-case hex digits. A string is hashed as UTF-8. */
export function sha256Hex(bytes: Uint8Array | string): string {
  return hash("sha256", bytes, "hex");
}

/** The digest of a JSON value: the SHA-256 of its canonical text, 64 hex digits. Throws as canonicalJson does. */
export function digestOf(value: JsonValue): string {
  return sha256Hex(canonicalJson(value));
}

function textOf(value: JsonValue): string | undefined {
  try {
    return canonicalize(value);
  } catch (e: unknown) {
    throw notCanonical(e);
  }
}

function notCanonical(cause: unknown): Error {
  const message = "the value has no canonical JSON form (RFC 8785)";
  return fault(ErrorReason.INVALID_INPUT, { field: "", rule: "rfc8785" }, { message, cause });
}
