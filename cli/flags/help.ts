import { visible, visibleLine } from "../print/escape.ts";
import type { Style } from "../print/style.ts";
import type { Flag } from "./flag.ts";

/** One entry of a help page. */
export interface HelpEntry {
  /** What is typed, such as "--timeout-ms INTEGER". */
  term: string;
  /** What it means. Lines are kept, long ones are wrapped. */
  text: string;
}

/** What help says of a flag: how it is typed, whether it is required, and the schema's own words. */
export function helpEntry(flag: Flag): HelpEntry {
  const required = flag.required && !/\brequired\b/i.test(flag.description) ? " Required." : "";
  return { term: termOf(flag), text: visible(flag.description) + required };
}

function termOf({ name, shape, value }: Flag): string {
  if (value.kind === "switch" && shape === "one") return `--[no-]${name}`;
  const word =
    value.kind === "choice" ? value.choices.map(({ short }) => visibleLine(short)).join("|") : WORDS[value.kind];
  if (shape === "map") return `--${name} KEY=${word} ...`;
  return shape === "list" ? `--${name} ${word} ...` : `--${name} ${word}`;
}

const WORDS = {
  text: "TEXT",
  integer: "INTEGER",
  number: "NUMBER",
  switch: "true|false",
  bytes: "BASE64|@FILE",
  json: "JSON",
} as const;

/** Entries as a block: terms on the left, indented by two, texts wrapped to the width on the right. */
export function helpBlock(entries: readonly HelpEntry[], width: number, style: Style): string {
  const longest = Math.max(0, ...entries.map(({ term }) => term.length));
  const column = Math.min(longest, 30) + 4;
  return entries
    .map(({ term, text }) => {
      const lines = text.split("\n").flatMap((line) => wrap(line, Math.max(30, width - column)));
      const head = `  ${style.bold(term)}`;
      const fits = term.length + 4 <= column;
      const first = fits ? `${head}${" ".repeat(column - term.length - 2)}${lines.shift() ?? ""}` : head;
      return [first, ...lines.map((line) => " ".repeat(column) + line)].map((line) => `${line.trimEnd()}\n`).join("");
    })
    .join("");
}

/** Words on lines of at most so many characters, but for a word that is longer itself. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/ +/)) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
