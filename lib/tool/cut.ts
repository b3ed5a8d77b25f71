import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { sha256Hex } from "../sign/canonical.ts";

/** A text, or its beginning and its end where it is too long to show. */
export interface CutText {
  head: string;
  /** Empty where the text is whole. */
  tail: string;
  /** What is between the two; empty where the text is whole. */
  note: string;
}

/**
 * The beginning and the end of a text that is too long to show, with the length of what is between and the digest of the
 * whole. No surrogate pair is cut in two. Pure.
 *
 * @param limit the longest text that stays whole, in UTF-16 code units.
 */
export function cutText(text: string, limit: number): CutText {
  if (text.length <= limit) return { head: text, tail: "", note: "" };
  const headEnd = boundary(text, Math.ceil(limit / 2));
  const tailStart = boundary(text, text.length - Math.floor(limit / 2));
  const head = text.slice(0, headEnd);
  const tail = text.slice(tailStart);
  const left = tailStart - headEnd;
  const note = `[cut: ${left} of ${text.length} characters are not shown here; SHA-256 of all ${sha256Hex(text)}]`;
  return { head, tail, note };
}

function boundary(text: string, at: number): number {
  const code = text.charCodeAt(at);
  return code >= 0xdc00 && code <= 0xdfff ? at + 1 : at;
}

/** How arguments are made short. */
export interface KeptLimits {
  /** The longest text that is kept whole; the next ones are tried where the arguments are too long all the same. */
  texts: readonly number[];
  /** The longest arguments, as JSON. UTF-16 code units. */
  total: number;
}

/** Of a list that is too long, so many items are kept at its beginning and at its end. */
const KEPT_ITEMS = 8;

/**
 * Arguments short enough to be sent in lists: the middle of long texts is left out, with a note in its place; where that is
 * not enough, the middle of long lists; where even that is not, a note stands in the place of everything. Pure.
 */
export function keptArguments(args: JsonObject, { texts, total }: KeptLimits): JsonObject {
  for (const limit of texts) {
    const kept = cutValue(args, limit, Number.POSITIVE_INFINITY) as JsonObject;
    if (JSON.stringify(kept).length <= total) return kept;
  }
  const shortest = cutValue(args, texts.at(-1) ?? 0, KEPT_ITEMS) as JsonObject;
  if (JSON.stringify(shortest).length <= total) return shortest;
  return { note: cutText(JSON.stringify(args), 0).note };
}

function cutValue(value: JsonValue, limit: number, items: number): JsonValue {
  if (typeof value === "string") {
    const { head, tail, note } = cutText(value, limit);
    return note === "" ? value : `${head} ${note} ${tail}`;
  }
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return cutList(value, items).map((item) => cutValue(item, limit, items));
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, cutValue(inner, limit, items)]));
}

function cutList(list: readonly JsonValue[], items: number): readonly JsonValue[] {
  if (list.length <= 2 * items + 1) return list;
  const note = `[cut: ${list.length - 2 * items} of ${list.length} items are not shown here]`;
  return [...list.slice(0, items), note, ...list.slice(-items)];
}
