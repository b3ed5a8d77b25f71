import { type DescMessage, type JsonObject, type JsonValue, type Message, toJson } from "@bufbuild/protobuf";
import { createValidator } from "@bufbuild/protovalidate";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { MAX_ARGUMENT_BYTES } from "../../../lib/arguments/canonical-arguments.ts";
import { mayHoldSecrets, redactSecretFields } from "../../../lib/arguments/redact.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { runProblems } from "../../../lib/programs/run-input.ts";
import { decodeInput } from "../../../lib/serve/decode-input.ts";
import { canonicalJson, sha256Hex } from "../../../lib/sign/canonical.ts";
import type { JsonSchema } from "../../../lib/toolschema/json-schema.ts";

/** Arguments that hold to a tool's input schema, as they are decided on, signed for and run. */
export interface CanonicalArguments {
  /** RFC 8785 JSON of the input's ProtoJSON, in UTF-8. */
  bytes: Uint8Array;
  /** SHA-256 of the bytes, in hex. */
  digest: string;
  /** The longest the caller lets the call run, in milliseconds; 0 where the input does not say. */
  timeoutMs: number;
}

/** Limits that hold before the schema is looked at. */
const MAX_DEPTH = 32;
const MAX_KEYS = 1000;

/** The longest that a caller can let a call run, in milliseconds. */
const MAX_TIMEOUT_MS = 3_600_000;

const validator = createValidator();
const encoder = new TextEncoder();

/**
 * Checks arguments against a tool's input message and brings them into their one canonical form. Unknown fields are
 * refused, not dropped: what is on record and what runs are the same bytes. INVALID_INPUT names every field that is
 * wrong; INPUT_TOO_LARGE names the limit.
 */
export function canonicalArguments(input: DescMessage, params: JsonObject): CanonicalArguments {
  checkSize(params);
  const message = decodeInput(validator, input, params, "params");
  refuseUnrunnable(message);
  const json = toJson(input, message);
  const bytes = encoder.encode(canonicalJson(json));
  if (bytes.length > MAX_ARGUMENT_BYTES) throw tooLarge("bytes", "params");
  return { bytes, digest: sha256Hex(bytes), timeoutMs: timeoutOf(json) };
}

/** The canonical arguments without what the tool's schema marks as secret; undefined where there is no secret in them. */
export function withoutSecrets(canonical: Uint8Array, schema: JsonSchema): Uint8Array | undefined {
  if (!mayHoldSecrets(canonical, schema)) return undefined;
  const text = Buffer.from(canonical.buffer, canonical.byteOffset, canonical.byteLength).toString();
  const shown = canonicalJson(redactSecretFields(JSON.parse(text) as JsonObject, schema));
  return shown === text ? undefined : encoder.encode(shown);
}

function refuseUnrunnable(input: Message): void {
  const problems = runProblems(input);
  if (problems.length === 0) return;
  const violations = problems.map(({ field, message }) => ({ field: `params.${field}`, message }));
  const message = violations.map((one) => `${one.field}: ${one.message}`).join("; ");
  const field = violations[0]?.field ?? "params";
  throw fault(ErrorReason.INVALID_INPUT, { field, rule: "program" }, { message, violations });
}

/** Walks without recursion: the value comes from a caller and may be as deep as the message limit lets it be. */
function checkSize(params: JsonObject): void {
  let keys = 0;
  let level: JsonValue[] = [params];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_DEPTH) throw tooLarge("depth", "params");
    const next: JsonValue[] = [];
    for (const value of level) {
      if (typeof value !== "object" || value === null) continue;
      const children = Object.values(value);
      if (!Array.isArray(value)) keys += children.length;
      if (keys > MAX_KEYS) throw tooLarge("keys", "params");
      for (const child of children) if (typeof child === "object" && child !== null) next.push(child);
    }
    level = next;
  }
}

function timeoutOf(json: JsonValue): number {
  if (typeof json !== "object" || json === null || Array.isArray(json)) return 0;
  const { timeoutMs } = json;
  // An announced tool may have a field of that name that means something else.
  if (typeof timeoutMs !== "number" || !Number.isInteger(timeoutMs)) return 0;
  return timeoutMs > 0 && timeoutMs <= MAX_TIMEOUT_MS ? timeoutMs : 0;
}

function tooLarge(limit: string, field: string) {
  return fault(ErrorReason.INPUT_TOO_LARGE, { limit, field }, { message: `${field}: over the limit of ${limit}` });
}
