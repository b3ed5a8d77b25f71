import { capMarks, cleanCut, stripControls } from "./controls.ts";
import { findSecrets, redactSpans, type SecretSpan } from "./secrets.ts";

/** Cleans output that comes in chunks. */
export interface StreamCleaner {
  /** Takes the next bytes and returns the text that is safe to show now. May be empty. */
  push(chunk: Uint8Array): string;
  /** Returns the rest. */
  end(): string;
  /** How many secrets were taken out so far. */
  readonly redactions: number;
}

/** How much of an unfinished line is held back, in characters, because a secret may go on in the next chunk. */
const OVERLAP = 512;

/** How long a secret may be that is waited for to its end, in characters. */
const LONGEST_SECRET = 16_384;

/**
 * After so many bytes a cleaner that begins in the middle of a stream holds back the same as one that has read all of it: a
 * secret that is waited for, of up to four bytes a character, and as much again as is held back without one.
 */
export const CONTEXT_BYTES = 4 * (LONGEST_SECRET + 4 * OVERLAP);

/**
 * A cleaner for one live stream of UTF-8: the same rules as cleanOutput, on text that is cut anywhere, even inside a
 * character, an escape sequence or a secret. Whole lines pass at once; an unfinished line is held back until it is
 * longer than 512 characters. Join all results to get what cleanOutput makes of the whole, but for a secret with white
 * space in it that is cut at a place longer than that.
 */
export function createStreamCleaner(): StreamCleaner {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let raw = "";
  let pending = "";
  /** The end of what was released, as it was before secrets were taken out. */
  let released = "";
  let redactions = 0;

  const release = (cut: number, spans: readonly SecretSpan[]): string => {
    const inside = spans.filter((span) => span.end <= cut);
    const text = redactSpans(pending.slice(0, cut), inside);
    redactions += inside.length;
    released = (released + pending.slice(Math.max(0, cut - 2 * OVERLAP), cut)).slice(-2 * OVERLAP);
    pending = pending.slice(cut);
    return text;
  };

  return {
    push(chunk) {
      raw += decoder.decode(chunk, { stream: true });
      const whole = cleanCut(raw);
      pending = capMarks(pending + stripControls(raw.slice(0, whole)));
      raw = raw.slice(whole);
      const spans = findSecrets(pending);
      return release(cutBefore(spans, pending, released), spans);
    },
    end() {
      pending = capMarks(pending + stripControls(raw + decoder.decode()));
      raw = "";
      return release(pending.length, findSecrets(pending));
    },
    get redactions() {
      return redactions;
    },
  };
}

/** Where the text that waits may be cut: at the last place for that, and in no secret. */
function cutBefore(spans: readonly SecretSpan[], text: string, released: string): number {
  const cut = Math.max(0, lastPlace(released + text) - released.length);
  for (const span of spans) {
    const open = span.end >= cut && span.start < cut;
    if (open && text.length - span.start <= LONGEST_SECRET) return span.start;
    if (open) return Math.min(span.end, text.length);
  }
  return cut;
}

/**
 * After the last line, or the last word where the line is long. It depends on the last 1024 characters alone, so that a
 * cleaner which begins in the middle soon cuts where one that has read all does.
 */
function lastPlace(text: string): number {
  const line = text.lastIndexOf("\n") + 1;
  const overlap = text.length - OVERLAP;
  if (line >= overlap) return line;
  const word = text.lastIndexOf(" ", overlap) + 1;
  return Math.max(line, word > overlap - OVERLAP ? word : overlap);
}
