import type { JsonObject, JsonValue } from "@bufbuild/protobuf";

/** What stands in an output where a secret was. */
const MASK = "[redacted]";

/** Shorter ones would be found everywhere by chance, and say nothing by being masked. */
export const MIN_SECRET = 8;

/** Replaces values in what a call returns. */
export interface Mask {
  text(text: string): string;
  output(output: JsonObject): JsonObject;
  /** The same for bytes, whose end may cut a value: what may be its beginning is left out. */
  bytes(bytes: Buffer): Buffer;
}

/**
 * Masks values in texts: as they are, and in the forms that a service that echoes its request is likely to give them (JSON,
 * percent-encoding, base64 at each of its three alignments, as text and URL-safe). They are ASCII, as are their forms. Pure.
 */
export function maskOf(values: readonly string[]): Mask {
  // A form that holds another one goes first, so that nothing is left of it.
  const forms = [...new Set(values.flatMap(formsOf))].sort((a, b) => b.length - a.length);
  const text = (one: string): string => forms.reduce((masked, form) => masked.replaceAll(form, MASK), one);
  const value = (one: JsonValue): JsonValue => {
    if (typeof one === "string") return text(one);
    if (typeof one !== "object" || one === null) return one;
    return Array.isArray(one) ? one.map(value) : object(one);
  };
  const object = (one: JsonObject): JsonObject =>
    Object.fromEntries(Object.entries(one).map(([key, inner]) => [text(key), value(inner)]));
  return {
    text,
    output: object,
    bytes: (bytes) => Buffer.from(withoutCut(text(bytes.toString("latin1")), forms), "latin1"),
  };
}

/** A text without the end of it with which one of the forms begins. */
function withoutCut(text: string, forms: readonly string[]): string {
  const cut = forms.map((form) => {
    let length = Math.min(form.length - 1, text.length);
    while (length > 0 && !text.endsWith(form.slice(0, length))) length--;
    return length;
  });
  return text.slice(0, text.length - Math.max(0, ...cut));
}

function formsOf(secret: string): string[] {
  const lines = secret.split(/\r?\n/).filter((line) => line.length >= MIN_SECRET);
  const plain = [secret, ...lines];
  const written = plain.flatMap((one) => [one, JSON.stringify(one).slice(1, -1), encodeURIComponent(one)]);
  return [...written, ...base64Forms(Buffer.from(secret))].filter((form) => form.length >= MIN_SECRET);
}

/** The characters of base64 that stand for the secret alone, wherever it begins in what is encoded. */
function base64Forms(secret: Buffer): string[] {
  return [0, 1, 2].flatMap((before) => {
    const encoded = Buffer.concat([Buffer.alloc(before), secret])
      .toString("base64")
      .replace(/=+$/, "");
    // The first character that has bits of what stands before, and the last one that may have some of what follows.
    const own = encoded.slice(Math.ceil((before * 8) / 6), Math.floor(((before + secret.length) * 8) / 6));
    return [own, own.replaceAll("+", "-").replaceAll("/", "_")];
  });
}
