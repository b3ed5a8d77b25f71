import type { JsonValue } from "@bufbuild/protobuf";

/**
 * The value as JSON text of at most `maxChars` characters, with long strings and lists cut in the middle until it fits.
 * Each cut says how much it left out. What still does not fit is replaced by a note.
 */
export function shortenJson(value: JsonValue, maxChars: number): string {
  const whole = JSON.stringify(value);
  if (whole.length <= maxChars) return whole;
  for (let budget = maxChars; budget >= 64; budget = Math.floor(budget / 2)) {
    const text = JSON.stringify(cut(value, { chars: budget, items: Math.max(4, Math.floor(budget / 32)) }));
    if (text.length <= maxChars) return text;
  }
  return JSON.stringify({ left_out: `the whole value: ${whole.length} characters of JSON` });
}

/** The head and the tail of a text of more than `maxChars` characters, with a note between them. */
export function shortenText(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const head = Math.ceil(maxChars / 2);
  const tail = maxChars - head;
  const left = `[… ${text.length - maxChars} characters left out …]`;
  // A cut may fall inside a surrogate pair; half a pair is no text.
  return `${text.slice(0, head)}${left}${text.slice(text.length - tail)}`.toWellFormed();
}

interface Limits {
  chars: number;
  items: number;
}

function cut(value: JsonValue, limits: Limits): JsonValue {
  if (typeof value === "string") return shortenText(value, limits.chars);
  if (Array.isArray(value)) return cutList(value, limits);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, cut(item, limits)]));
}

function cutList(list: JsonValue[], limits: Limits): JsonValue[] {
  if (list.length <= limits.items) return list.map((item) => cut(item, limits));
  const head = Math.ceil(limits.items / 2);
  const kept = [...list.slice(0, head), ...list.slice(list.length - (limits.items - head))];
  const items = kept.map((item) => cut(item, limits));
  return items.toSpliced(head, 0, `[… ${list.length - limits.items} items left out …]`);
}
