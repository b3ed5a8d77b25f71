import { findSecrets } from "../../../../../lib/sanitize/secrets.ts";
import type { LineTest } from "./compile-pattern.ts";

/** A line that matches. */
export interface TextMatch {
  /** The first is 1. */
  line: number;
  text: string;
  before: string[];
  after: string[];
}

/** How much of a line is looked at, in characters. */
const LONGEST_LINE = 8192;

/** How much of a line is returned, in characters. */
const LONGEST_TEXT = 500;

/** How far around a line a secret is looked for that it is a part of, in characters: longer than a private key. */
const AROUND = 48 * 1024;

/**
 * The lines of a text that match, one at a time, with the lines around them. Secrets are masked by "*", and a line matches
 * only where it does so masked: neither its text nor whether it matches says what a secret is. Yields undefined at each line
 * that does not match, so that the caller can stop or pause.
 */
export function* searchText(
  text: string,
  isMatch: LineTest,
  contextLines: number,
): Generator<TextMatch | undefined, void, undefined> {
  const masked = createMasker(text);
  const shown = (start: number): string => cutLine(masked(start, endOfLine(text, start)));
  let recent: number[] = [];
  let number = 0;
  for (let start = 0; start < text.length; start = nextLine(text, start)) {
    number++;
    const line = matching(text, start, isMatch, masked);
    if (line === undefined) yield undefined;
    else {
      const after = following(text, start, contextLines).map(shown);
      yield { line: number, text: cutLine(line, isMatch), before: recent.map(shown), after };
    }
    if (contextLines > 0) recent = [...recent, start].slice(-contextLines);
  }
}

type Masked = ReturnType<typeof createMasker>;

/** The line, masked, where it matches. It is masked only where it matches as it is: that is the costly part. */
function matching(text: string, start: number, isMatch: LineTest, masked: Masked): string | undefined {
  const end = endOfLine(text, start);
  if (!isMatch(text.slice(start, Math.min(end, start + LONGEST_LINE)))) return undefined;
  const line = masked(start, end);
  return isMatch(line) ? line : undefined;
}

/** Where the next lines start. */
function following(text: string, start: number, count: number): number[] {
  const starts: number[] = [];
  for (let next = start; starts.length < count; starts.push(next)) {
    next = nextLine(text, next);
    if (next >= text.length) break;
  }
  return starts;
}

function nextLine(text: string, start: number): number {
  const end = text.indexOf("\n", start);
  return end < 0 ? text.length : end + 1;
}

function endOfLine(text: string, start: number): number {
  const end = text.indexOf("\n", start);
  const stop = end < 0 ? text.length : end;
  return stop > start && text[stop - 1] === "\r" ? stop - 1 : stop;
}

/** Gives parts of a text with its secrets masked, and looks for them only around these parts. */
function createMasker(text: string): (start: number, end: number) => string {
  let [first, last, window] = [0, 0, ""];
  return (start, end) => {
    const stop = Math.min(end, start + LONGEST_LINE);
    const isIn = start - AROUND >= first || first === 0;
    if (start < first || !isIn || stop + AROUND > last) {
      first = Math.max(0, start - AROUND);
      last = Math.min(text.length, stop + 3 * AROUND);
      window = maskSecrets(text.slice(first, last));
      // Where the text ends nothing more can follow.
      if (last === text.length) last = Number.POSITIVE_INFINITY;
    }
    return window.slice(start - first, stop - first);
  };
}

/** A text with its secrets as so many "*", each on the lines where it stood. */
export function maskSecrets(text: string): string {
  let [masked, from] = ["", 0];
  for (const { start, end } of findSecrets(text)) {
    masked += text.slice(from, start) + text.slice(start, end).replace(/[^\r\n]/g, "*");
    from = end;
  }
  return masked + text.slice(from);
}

/** A line of a length to be returned: its beginning, or where that does not match, what ends with the match. */
function cutLine(line: string, isMatch?: LineTest): string {
  if (line.length <= LONGEST_TEXT) return line;
  if (isMatch === undefined || isMatch(line.slice(0, LONGEST_TEXT))) return line.slice(0, LONGEST_TEXT);
  let [without, within] = [LONGEST_TEXT, line.length];
  while (within - without > 1) {
    const middle = (without + within) >>> 1;
    if (isMatch(line.slice(0, middle))) within = middle;
    else without = middle;
  }
  return line.slice(within - LONGEST_TEXT, within);
}
