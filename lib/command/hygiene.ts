/** Characters that are not what they look like, or do not show at all. Line ends and tabs are fine. */
const HIDDEN: readonly (readonly [RegExp, string])[] = [
  [/\0/, "a NUL character"],
  [/\r/, "a carriage return"],
  [/[\p{Cc}--[\t\n]]/v, "a control character"],
  [/[\p{Cf}\p{Default_Ignorable_Code_Point}]/u, "a character that does not show"],
  [/[^\S \n\t\r\v\f]|[\u2800\u3164\uffa0]/, "a blank that a shell takes for a letter"],
  [/[\p{Co}\p{Cn}]/u, "a character without a meaning"],
  [/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/, "half a character"],
];

/** What in a text a reader cannot see, or takes for something else; undefined where there is nothing. */
export function hiddenCharacter(text: string): string | undefined {
  return HIDDEN.find(([pattern]) => pattern.test(text))?.[1];
}

/** The text as it looks to a reader, for the block scan alone: look-alikes as plain letters, and what does not show left out. */
export function asItLooks(text: string): string {
  return text
    .replace(/\r\n?/g, "\n")
    .replace(/[\0\p{Cf}\p{Default_Ignorable_Code_Point}]/gu, "")
    .replace(/[^\S \n\t]|[\u2800\u3164\uffa0]/g, " ")
    .normalize("NFKC")
    .replace(/[аеорсухіѕјԁһӏԛԝ]/g, (letter) => LOOK_ALIKES.get(letter) ?? letter);
}

/** Cyrillic letters that look like Latin ones. */
const LOOK_ALIKES: ReadonlyMap<string, string> = new Map(
  Array.from("аеорсухіѕјԁһӏԛԝ").map((letter, at) => [letter, "aeopcyxisjdhlqw"[at] ?? letter]),
);
