import { findSecrets } from "./secrets.ts";

/** The fewest characters of base64 that are looked at: what 18 bytes hold is no secret. */
const SHORTEST = 24;

const BASE64 = /^(?:[A-Za-z0-9+/]{4})+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** A text after its bytes were looked at. */
export interface CleanBytes {
  text: string;
  /** How many secrets were masked. */
  redactions: number;
}

/**
 * Masks the secrets in what a whole text is the base64 of (bytes fields are that in JSON), each byte of one by "*", so
 * that lengths and offsets stay. Any other text, and one without a secret, comes back as it is.
 */
export function maskBase64(text: string): CleanBytes {
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
  for (const { start, end } of findSecrets(around.toString("latin1"))) {
    const isCut = (start < from && end > from) || (start < to && end > to);
    if (isCut) slice.fill("*", Math.max(0, start - from), Math.min(to, end) - from);
  }
  return slice;
}
