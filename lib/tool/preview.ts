import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { parseStrictJson } from "../json/strict-json.ts";
import { cutText } from "./cut.ts";

/** One thing that a call's arguments stand for on its device, such as the command line of a process. */
export interface PreviewFact {
  /** Such as "command". The names of one preview differ. */
  name: string;
  value: string;
  /** The value is content of the device that the caller may not read: only approvers are shown it. */
  isContent?: boolean;
}

/** The most facts of one preview. */
const MAX_FACTS = 32;

/** The longest name, in UTF-16 code units. */
const NAME_LIMIT = 64;

/** The longest value that a device leaves whole, in UTF-16 code units; the next ones are tried where the preview is too large. */
const VALUE_LIMITS = [4096, 512, 64] as const;

/** The longest value that is read: a cut one has a note in its middle. */
const READ_LIMIT = VALUE_LIMITS[0] + 256;

/** The largest preview, in bytes. */
export const MAX_PREVIEW_BYTES = 64 * 1024;

/**
 * The output of a device for its facts. A long value is cut in the middle, where the digest of all of it stands, so that two
 * previews are the same only where the whole values are. Pure.
 */
export function previewOutput(facts: readonly PreviewFact[]): JsonObject {
  const outputs = VALUE_LIMITS.values().map((limit) => outputWith(facts, limit));
  return outputs.find((one) => Buffer.byteLength(JSON.stringify(one)) <= MAX_PREVIEW_BYTES) ?? {};
}

function outputWith(facts: readonly PreviewFact[], limit: number): JsonObject {
  const shown: JsonValue[] = facts.map(({ name, value, isContent = false }) => {
    const { head, tail, note } = cutText(value.toWellFormed(), limit);
    return { name, value: note === "" ? head : `${head} ${note} ${tail}`, ...(isContent && { isContent }) };
  });
  return { facts: shown };
}

/** The facts of a device's output. Undefined where it is no preview, or larger than one may be. Pure. */
export function readPreview(bytes: Uint8Array): PreviewFact[] | undefined {
  if (bytes.length === 0 || bytes.length > MAX_PREVIEW_BYTES) return undefined;
  const output = parsed(bytes);
  const facts = isObject(output) && Object.keys(output).join() === "facts" ? output.facts : undefined;
  if (!Array.isArray(facts) || facts.length === 0 || facts.length > MAX_FACTS) return undefined;
  const found = facts.filter(isFact);
  const isWhole = found.length === facts.length && new Set(found.map(({ name }) => name)).size === found.length;
  return isWhole ? found : undefined;
}

/** The facts that are not the same in both, by name: those that one of the two lacks, too. Pure. */
export function changedFacts(
  before: readonly PreviewFact[],
  after: readonly PreviewFact[],
): { name: string; before: PreviewFact | undefined; after: PreviewFact | undefined }[] {
  const [old, now] = [before, after].map((facts) => new Map(facts.map((fact) => [fact.name, fact])));
  const names = new Set([...before, ...after].map(({ name }) => name));
  return [...names]
    .map((name) => ({ name, before: old?.get(name), after: now?.get(name) }))
    .filter((fact) => fact.before?.value !== fact.after?.value);
}

function isFact(fact: JsonValue): fact is JsonObject & PreviewFact {
  if (!isObject(fact)) return false;
  const { name, value, isContent = false, ...rest } = fact;
  if (typeof name !== "string" || typeof value !== "string" || typeof isContent !== "boolean") return false;
  const hasLength = name !== "" && name.length <= NAME_LIMIT && value.length <= READ_LIMIT;
  return hasLength && Object.keys(rest).length === 0;
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function parsed(bytes: Uint8Array): JsonValue | undefined {
  try {
    return parseStrictJson(bytes, { maxBytes: MAX_PREVIEW_BYTES, maxKeys: 4 * MAX_FACTS });
  } catch {
    return undefined;
  }
}
