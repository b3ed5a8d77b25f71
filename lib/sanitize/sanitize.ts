import type { JsonValue } from "@bufbuild/protobuf";
import { stripControls } from "./controls.ts";
import { findSecrets, redactSpans } from "./secrets.ts";

export { stripControls } from "./controls.ts";
export { CONTEXT_BYTES, createStreamCleaner, type StreamCleaner } from "./stream.ts";

export interface CleanText {
  text: string;
  /** How many secrets were taken out. */
  redactions: number;
  /** True when the text is not the one that was given. */
  changed: boolean;
}

export interface CleanJson<T extends JsonValue> {
  /** The very same value where nothing had to be cleaned. */
  value: T;
  /** How many secrets were taken out. */
  redactions: number;
  /** True when the value is not the one that was given. */
  changed: boolean;
}

/** How deep a value may be nested. What lies deeper is left out. */
const DEEPEST = 200;

/**
 * Makes a tool's output fit to be shown and to be given to a model: first control characters out (see stripControls),
 * so that what they split comes together, then secrets out (see findSecrets). Each secret becomes "[redacted: kind]".
 * It guards against accidents. It does not see a secret that is written in another way: encoded, reversed, in parts.
 */
export function cleanOutput(text: string): CleanText {
  const stripped = stripControls(text);
  const { text: clean, redactions } = redactSecrets(stripped);
  return { text: clean, redactions, changed: clean !== text };
}

/** Takes secrets out of a text and leaves the rest as it is. */
export function redactSecrets(text: string): { text: string; redactions: number } {
  const spans = findSecrets(text);
  return spans.length === 0 ? { text, redactions: 0 } : { text: redactSpans(text, spans), redactions: spans.length };
}

/**
 * Cleans every string of a JSON value, and the keys of its objects. Of a string that is base64 as a whole, as bytes are
 * in JSON, the decoded bytes are looked at too. Numbers, booleans and null stay.
 */
export function cleanJson<T extends JsonValue>(value: T): CleanJson<T> {
  const count = { redactions: 0 };
  const clean = cleanValue(value, count, 0) as T;
  return { value: clean, redactions: count.redactions, changed: clean !== value };
}

interface Count {
  redactions: number;
}

function cleanValue(value: JsonValue, count: Count, depth: number): JsonValue {
  if (typeof value === "string") return cleanString(value, count);
  if (typeof value !== "object" || value === null) return value;
  if (depth === DEEPEST) return "[left out: nested too deep]";
  return Array.isArray(value) ? cleanArray(value, count, depth + 1) : cleanObject(value, count, depth + 1);
}

function cleanString(text: string, count: Count): string {
  const bytes = maskBase64(text);
  const clean = cleanOutput(bytes.text);
  count.redactions += clean.redactions + bytes.redactions;
  return clean.text;
}

function cleanArray(items: JsonValue[], count: Count, depth: number): JsonValue[] {
  const clean = items.map((item) => cleanValue(item, count, depth));
  return clean.some((item, at) => item !== items[at]) ? clean : items;
}

function cleanObject(object: Record<string, JsonValue>, count: Count, depth: number): JsonValue {
  const names = new Set<string>();
  let changed = false;
  const entries = Object.entries(object).map(([key, item]): [string, JsonValue] => {
    let name = cleanString(key, count);
    // Two keys may be the same once cleaned; neither value may be lost.
    while (names.has(name)) name += "_";
    names.add(name);
    const clean = cleanValue(item, count, depth);
    changed ||= name !== key || clean !== item;
    return [name, clean];
  });
  return changed ? Object.fromEntries(entries) : object;
}

/** The fewest characters of base64 that are looked at: what 18 bytes hold is no secret. */
const SHORTEST = 24;

const BASE64 = /^(?:[A-Za-z0-9+/]{4})+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** A text after its bytes were looked at. */
interface CleanBytes {
  text: string;
  /** How many secrets were masked. */
  redactions: number;
}

/**
 * Masks the secrets in what a whole text is the base64 of (bytes fields are that in JSON), each byte of one by "*", so
 * that lengths and offsets stay. Any other text, and one without a secret, comes back as it is.
 */
function maskBase64(text: string): CleanBytes {
  if (text.length < SHORTEST || !BASE64.test(text)) return { text, redactions: 0 };
  const bytes = Buffer.from(text, "base64");
  const spans = findSecrets(bytes.toString("latin1"));
  for (const { start, end } of spans) bytes.fill("*", start, end);
  return { text: spans.length === 0 ? text : bytes.toString("base64"), redactions: spans.length };
}

/**
 * Masks, in a slice of a file, what belongs to a secret that goes on before or behind it: neither half would be known
 * by itself. Secrets that lie in the slice as a whole are left to what sanitizes the text.
 *
 * @param around the slice with what stands around it in the file.
 * @param from where the slice begins in `around`.
 * @param to where it ends there.
 */
export function maskCutSecrets(around: Buffer, from: number, to: number): Buffer {
  const slice = Buffer.from(around.subarray(from, to));
  for (const [first, last] of windowsAround(from, to, around.length)) {
    for (const span of findSecrets(around.toString("latin1", first, last))) {
      const [start, end] = [first + span.start, first + span.end];
      const isCut = (start < from && end > from) || (start < to && end > to);
      if (isCut) slice.fill("*", Math.max(0, start - from), Math.min(to, end) - from);
    }
  }
  return slice;
}

/** How far a secret reaches into a slice at most, in bytes: a private key's body is the longest. */
const REACH = 40 * 1024;

/** The places where a secret that is cut can lie: a large slice is looked at as a whole once, and not here again. */
function windowsAround(from: number, to: number, length: number): readonly (readonly [number, number])[] {
  if (to - from <= 2 * REACH) return [[0, length]];
  return [
    [0, from + REACH],
    [to - REACH, length],
  ];
}
