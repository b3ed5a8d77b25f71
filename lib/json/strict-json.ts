import { isUtf8 } from "node:buffer";
import type { JsonValue } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../fault/fault.ts";
import { invalidField } from "../fault/invalid-input.ts";
import { type JsonLimits, type JsonViolation, pathOf, type Scan, scanDocument } from "./scanner.ts";

export type { JsonLimits, JsonRule, JsonViolation } from "./scanner.ts";

/** The limits where none are given. */
const defaultJsonLimits: JsonLimits = Object.freeze({ maxBytes: 1024 * 1024, maxDepth: 32, maxKeys: 1000 });

/**
 * Checks one JSON document (RFC 8259, I-JSON of RFC 7493 for strings and keys) before anything is built from it. Refuses
 * what parsers disagree about or hide: invalid UTF-8, a byte order mark, a key twice in one object, half a surrogate
 * pair, the key `__proto__`, a number beyond a double, data after the end, and more than the limits. Cost: about a
 * microsecond for 200 bytes.
 *
 * @returns The first thing that is wrong, or undefined.
 */
export function checkStrictJson(bytes: Uint8Array, limits: Partial<JsonLimits> = {}): JsonViolation | undefined {
  const { maxBytes, maxDepth, maxKeys } = { ...defaultJsonLimits, ...limits };
  if (bytes.length > maxBytes) return whole("max_bytes", `larger than ${maxBytes} bytes`);
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return whole("bom", "starts with a byte order mark");
  if (!isUtf8(bytes)) return whole("utf8", "is not valid UTF-8");
  const scan: Scan = {
    text: view(bytes).toString("latin1"),
    limits: { maxBytes, maxDepth, maxKeys },
    at: 0,
    keys: 0,
    open: [],
    problem: undefined,
  };
  if (scanDocument(scan) || scan.problem === undefined) return undefined;
  return { field: pathOf(scan), line: scan.text.slice(0, scan.at).split("\n").length, ...scan.problem };
}

/**
 * Parses a JSON document that passes `checkStrictJson`. No object in it has a `__proto__` key.
 * Throws INPUT_TOO_LARGE for a limit and INVALID_INPUT for anything else, each naming the field.
 */
export function parseStrictJson(bytes: Uint8Array, limits: Partial<JsonLimits> = {}): JsonValue {
  const text = decodeStrictJson(bytes, limits);
  const value: JsonValue = JSON.parse(text);
  return value;
}

/** The text of a JSON document that passes `checkStrictJson`; throws as `parseStrictJson` does. */
export function decodeStrictJson(bytes: Uint8Array, limits: Partial<JsonLimits> = {}): string {
  const violation = checkStrictJson(bytes, limits);
  if (violation !== undefined) throw jsonFault(violation, { ...defaultJsonLimits, ...limits });
  return view(bytes).toString();
}

function view(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function jsonFault({ field, rule, message }: JsonViolation, limits: JsonLimits): ConnectError {
  const text = field === "" ? `the JSON document: ${message}` : `${field}: ${message}`;
  if (rule === "max_bytes" || rule === "max_depth" || rule === "max_keys") {
    const limit = { max_bytes: limits.maxBytes, max_depth: limits.maxDepth, max_keys: limits.maxKeys }[rule];
    return fault(ErrorReason.INPUT_TOO_LARGE, { limit: String(limit), rule, field }, { message: text });
  }
  return invalidField(field, rule, message, { text });
}

function whole(rule: JsonViolation["rule"], message: string): JsonViolation {
  return { field: "", line: 1, rule, message };
}
