import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { canonicalJson, sha256Hex } from "../../../lib/sign/canonical.ts";

/** A call's arguments, read from their exact bytes. */
export interface CallArguments {
  args: JsonObject;
  /** SHA-256 of the bytes, in hex. */
  digest: string;
}

/** How deep arguments may be nested. */
const MAX_DEPTH = 64;

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Reads arguments, which must be a JSON object in its one canonical form (RFC 8785): so what rules look at, what is
 * hashed and what the device parses cannot differ. Repeated keys, white space, other number forms, invalid UTF-8 and lone
 * surrogates are refused with INVALID_INPUT.
 */
export function readArguments(bytes: Uint8Array): CallArguments {
  const { text, value } = parse(bytes);
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw refused("the arguments are no object");
  if (text.length > MAX_DEPTH && isDeeperThan(value, MAX_DEPTH)) throw refused(`nested over ${MAX_DEPTH} deep`);
  if (canonicalOf(value) !== text) throw refused("the arguments are not canonical JSON (RFC 8785)");
  return { args: value, digest: sha256Hex(bytes) };
}

function parse(bytes: Uint8Array): { text: string; value: JsonValue } {
  try {
    const text = decoder.decode(bytes);
    return { text, value: JSON.parse(text) as JsonValue };
  } catch (e: unknown) {
    throw refused("the arguments are no JSON", e);
  }
}

function canonicalOf(value: JsonObject): string {
  try {
    return canonicalJson(value);
  } catch (e: unknown) {
    throw refused("the arguments have no canonical JSON form (RFC 8785)", e);
  }
}

function isDeeperThan(value: JsonValue, depth: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (depth === 0) return true;
  return Object.values(value).some((inner) => isDeeperThan(inner, depth - 1));
}

function refused(message: string, cause?: unknown): Error {
  return fault(ErrorReason.INVALID_INPUT, { field: "arguments", rule: "canonical" }, { message, cause });
}
