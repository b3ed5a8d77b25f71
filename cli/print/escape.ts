/**
 * What a terminal would act on or a reader cannot see: control characters but tab and newline, line separators,
 * characters without a shape (bidi controls, zero width, tags), and half a surrogate pair. The two selectors that
 * choose an emoji's look stay.
 */
const UNSAFE = /[\p{Cc}--[\t\n]]|[\p{Zl}\p{Zp}\p{Surrogate}]|[\p{Default_Ignorable_Code_Point}--[\ufe0e\ufe0f]]/gv;

/** Text from elsewhere made safe for a terminal: what cannot be seen is shown as an escape. Tabs and newlines stay. */
export function visible(text: string): string {
  return text.replace(UNSAFE, escapeOf);
}

/** The text as it is, but made safe where it goes to a terminal. */
export function safeFor(output: { readonly isTTY?: boolean }, text: string): string {
  return output.isTTY === true ? visible(text) : text;
}

/** As `visible`, on one line. */
export function visibleLine(text: string): string {
  return visible(text).replaceAll("\n", "\\n").replaceAll("\t", "\\t");
}

function escapeOf(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (code <= 0xff) return `\\x${code.toString(16).padStart(2, "0")}`;
  if (code <= 0xffff) return `\\u${code.toString(16).padStart(4, "0")}`;
  return `\\u{${code.toString(16)}}`;
}
