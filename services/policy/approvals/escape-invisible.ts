/**
 * What a reader would not see, or would see elsewhere than it stands: control, format (bidi, zero-width, tags), private and
 * unassigned characters, lone surrogates, whatever fonts leave out (fillers, variation selectors), line and paragraph
 * separators, the blank braille pattern, and every space but " ".
 */
const UNSEEN = /[\p{C}\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}\u2800]|(?! )\p{Zs}/gu;

/** A text that looks like an escape of ours. */
const ESCAPE_LIKE = /\\(?=u\{)/g;

/**
 * The text with everything that is unseen made visible as \u{hex}. Two different texts never look the same because of
 * this: a backslash that begins such an escape in the text itself is escaped too.
 */
export function escapeInvisible(text: string): string {
  return text.replace(ESCAPE_LIKE, "\\u{5c}").replace(UNSEEN, escapeOf);
}

function escapeOf(character: string): string {
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
}
