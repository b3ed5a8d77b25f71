import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { checkStrictJson } from "../../../lib/serve/strict-json.ts";
import { canonicalJson } from "../../../lib/sign/canonical.ts";
import { type Refusal, refusal } from "../refusal.ts";

/** The most bytes of arguments, as in device_agent_service.proto. */
export const MAX_ARGUMENT_BYTES = 3 * 1024 * 1024;

/**
 * The arguments, where the bytes are exactly the canonical text (RFC 8785) of one JSON object. Anything else is refused,
 * because two spellings of the same arguments would have two digests, and two parsers could read one spelling
 * differently.
 */
export function readArguments(bytes: Uint8Array): { kind: "ok"; value: JsonObject } | Refusal {
  const violation = checkStrictJson(bytes, { maxBytes: MAX_ARGUMENT_BYTES });
  if (violation !== undefined) return invalid(violation.field, violation.rule, violation.message);
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
  const value: JsonValue = JSON.parse(text);
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return invalid("", "object", "is no JSON object");
  }
  if (canonicalJson(value) !== text) return invalid("", "rfc8785", "is not in canonical form");
  return { kind: "ok", value };
}

function invalid(field: string, rule: string, message: string): Refusal {
  const at = field === "" ? "arguments" : `arguments.${field}`;
  return refusal(ErrorReason.INVALID_INPUT, `${at}: ${message}`, { field: at, rule }, [{ field: at, message }]);
}
