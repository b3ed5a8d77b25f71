/** Anything but printable ASCII, tab and newline: a text without it needs no closer look. */
const UNUSUAL = /[^\t\n\x20-\x7e]/;

const ESC = String.raw`\x1b`;

/** The first set of control characters but tab and newline; DEL and the second set. */
const C0 = String.raw`\x00-\x08\x0b-\x1f`;
const C1 = String.raw`\x7f-\x9f`;

/** CSI of ECMA-48: parameters, intermediates, one final byte. */
const CSI = String.raw`(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]`;

/** OSC, DCS, SOS, PM, APC: text up to BEL or ST. */
const STRING = String.raw`(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x18\x1a\x1b\x80-\x9f]*(?:\x07|\x1b\\|\x9c)`;

/** All sequences. One that never ends loses its first two characters only, so that it can hide nothing. */
const SEQUENCES = new RegExp(String.raw`${CSI}|${STRING}|\x1b[ -/]*[0-~]`, "g");

/** A sequence that is whole, whatever follows. */
const WHOLE = new RegExp(String.raw`^(?:${CSI}|${STRING}|\x1b[ -/]*[0-OQ-WYZ\\${"`"}-~])`);

/** The last sequence of a text, with all that follows it. */
const OPEN = new RegExp(String.raw`(?:${ESC}[[\]PX^_]?|[\x90\x98\x9b\x9d-\x9f])[^\x07\x1b\x80-\x9f]*${ESC}?$`);

const CONTROLS = new RegExp(`[${C0}${C1}]`, "g");

/** Characters without a shape: bidi controls, zero width, tags, fillers. The two that choose an emoji's look stay. */
const INVISIBLE = /[[\p{Default_Ignorable_Code_Point}\ufff9-\ufffb]--[\ufe0e\ufe0f]]/gv;

/** Line ends of Unicode, which some programs break lines at. */
const LINE_ENDS = /[\u2028\u2029]/g;

/** More marks on one character than any script has: they run over the lines around it. */
const MARKS = /(\p{M}{5})\p{M}+/gu;

/**
 * Takes out what a terminal would act on and what a reader cannot see: escape sequences (ECMA-48), control characters
 * but newline and tab, bidi controls, zero-width, tag and annotation characters, and marks beyond the fifth on one
 * character. CR LF, a lone CR, U+2028 and U+2029 become a newline. Half a surrogate pair becomes U+FFFD. Linear in the length of the text.
 */
export function stripControls(text: string): string {
  if (!UNUSUAL.test(text)) return text;
  return capMarks(
    text
      .toWellFormed()
      .replace(SEQUENCES, "")
      .replace(/\r\n?/g, "\n")
      .replace(LINE_ENDS, "\n")
      .replace(CONTROLS, "")
      .replace(INVISIBLE, ""),
  );
}

/** Takes out the marks beyond the fifth on one character: for text that was put together of stripped parts. */
export function capMarks(text: string): string {
  return UNUSUAL.test(text) ? text.replace(MARKS, "$1") : text;
}

/** How long an escape sequence may be that is still waited for, in characters. */
const LONGEST_SEQUENCE = 1024;

/**
 * Where a text that goes on later must be cut so that no escape sequence and no CR LF is cut in two: the length where
 * the end is clean.
 */
export function cleanCut(text: string): number {
  const start = text.search(OPEN);
  if (start >= 0 && text.length - start <= LONGEST_SEQUENCE && !WHOLE.test(text.slice(start))) return start;
  return text.endsWith("\r") ? text.length - 1 : text.length;
}
