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
 * A cleaner for one live stream of UTF-8: the same rules as cleanOutput, on text that is cut anywhere, even inside a
 * character, an escape sequence or a secret. Whole lines pass at once; an unfinished line is held back until it is
 * longer than 512 characters. Join all results to get what cleanOutput makes of the whole, but for a secret with white
 * space in it that is cut at a place longer than that.
 */
export function createStreamCleaner(): StreamCleaner {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let raw = "";
  let pending = "";
  let redactions = 0;

  const release = (cut: number, spans: readonly SecretSpan[]): string => {
    const inside = spans.filter((span) => span.end <= cut);
    const text = redactSpans(pending.slice(0, cut), inside);
    redactions += inside.length;
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
      return release(cutBefore(spans, pending), spans);
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

/** Where the text may be cut: after its last line, or its last word where the line is long, and in no secret. */
function cutBefore(spans: readonly SecretSpan[], text: string): number {
  let cut = text.lastIndexOf("\n") + 1;
  if (text.length - cut > OVERLAP) cut = Math.max(cut, text.lastIndexOf(" ", text.length - OVERLAP) + 1);
  if (text.length - cut > 2 * OVERLAP) cut = text.length - OVERLAP;
  for (const span of spans) {
    const open = span.end >= cut && span.start < cut;
    if (open && text.length - span.start <= LONGEST_SECRET) return span.start;
    if (open) return Math.min(span.end, text.length);
  }
  return cut;
}
