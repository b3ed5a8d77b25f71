import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../fault/fault.ts";
import { invalidInput } from "../fault/invalid-input.ts";
import { canonicalJson, sha256Hex } from "../sign/canonical.ts";
import { MAX_ARGUMENT_BYTES } from "./canonical-arguments.ts";
import type { Tool } from "./codec.ts";
import { commandProblems } from "./command-problems.ts";
import { requestedTimeoutMs } from "./deadline.ts";
import type { JsonSchema } from "./json-schema.ts";
import { mayHoldSecrets, redactSecretFields } from "./redact.ts";

/** Arguments that hold to a tool's input schema, as they are decided on, signed and run. */
export interface CanonicalArguments {
  /** RFC 8785 JSON of the input's one form, in UTF-8. */
  bytes: Uint8Array;
  /** SHA-256 of the bytes, in hex. */
  digest: string;
  /** The longest the caller lets the call run, in milliseconds; 0 where the input does not say. */
  timeoutMs: number;
}

/** Limits that hold before the schema is looked at. */
const MAX_DEPTH = 32;
const MAX_KEYS = 1000;

const encoder = new TextEncoder();

/**
 * Checks arguments against a tool's schema and brings them into their one canonical form. Unknown fields are refused, not
 * dropped: what is on record and what runs are the same bytes. INVALID_INPUT names every field that is wrong;
 * INPUT_TOO_LARGE names the limit.
 */
export function canonicalArguments({ spec, codec }: Tool, params: JsonObject): CanonicalArguments {
  checkSize(params);
  const parsed = codec.parse(params);
  if (!parsed.ok) throw invalidInput(parsed.problems, "params");
  const json = codec.toJson(parsed.input);
  const problems = commandProblems(spec.inputSchema, json);
  if (problems.length > 0) throw invalidInput(problems, "params");
  const bytes = encoder.encode(canonicalJson(json));
  if (bytes.length > MAX_ARGUMENT_BYTES) throw tooLarge("bytes", "params");
  return { bytes, digest: sha256Hex(bytes), timeoutMs: requestedTimeoutMs(spec.inputSchema, json) };
}

/** The canonical arguments without what the tool's schema marks as secret; undefined where there is no secret in them. */
export function withoutSecrets(canonical: Uint8Array, schema: JsonSchema): Uint8Array | undefined {
  if (!mayHoldSecrets(canonical, schema)) return undefined;
  const text = Buffer.from(canonical.buffer, canonical.byteOffset, canonical.byteLength).toString();
  const shown = canonicalJson(redactSecretFields(JSON.parse(text) as JsonObject, schema));
  return shown === text ? undefined : encoder.encode(shown);
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

function tooLarge(limit: string, field: string) {
  return fault(ErrorReason.INPUT_TOO_LARGE, { limit, field }, { message: `${field}: over the limit of ${limit}` });
}
