import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { sha256Hex } from "../../../lib/sign/canonical.ts";

/** The beginning of a text that is too long to show, and what identifies the whole. */
export function cutText(text: string, limit: number): { shown: string; note: string } {
  if (text.length <= limit) return { shown: text, note: "" };
  const bytes = Buffer.byteLength(text);
  return {
    shown: text.slice(0, limit),
    note: `[cut: the first ${limit} characters of ${bytes} bytes; SHA-256 of all ${sha256Hex(text)}]`,
  };
}

/** The longest text that is kept whole in lists, and in arguments that are long all the same. UTF-16 code units. */
const KEPT_TEXTS = [4096, 200];

/** The longest arguments that are kept in lists, as JSON. UTF-16 code units. */
const MAX_KEPT = 65_536;

/**
 * Arguments short enough to be sent in lists: long texts are cut, with a note in the place of the rest; where that is not
 * enough, a note stands in the place of everything.
 */
export function keptArguments(args: JsonObject): JsonObject {
  for (const limit of KEPT_TEXTS) {
    const kept = cutValue(args, limit) as JsonObject;
    if (JSON.stringify(kept).length <= MAX_KEPT) return kept;
  }
  return { note: cutText(JSON.stringify(args), 0).note };
}

function cutValue(value: JsonValue, limit: number): JsonValue {
  if (typeof value === "string") {
    const { shown, note } = cutText(value, limit);
    return note === "" ? value : `${shown} ${note}`;
  }
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => cutValue(item, limit));
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, cutValue(inner, limit)]));
}
