import type { Word } from "unbash";
import { LIMITS } from "../limits.ts";
import { expandBraces } from "../shell/braces.ts";
import type { PlanWord } from "./plan.ts";

/** The words that one word of a shell text stands for, or why that is not known before it runs. */
export type Words = { ok: true; words: PlanWord[] } | { ok: false; why: string };

/** Reads a word by itself. Where the parser sees another text in it, it is no part of a plan. */
export function planWords(word: Word): Words {
  const hasBrace = /[{]/.test(word.text) && /[,]|[.][.]/.test(word.text);
  const texts = hasBrace ? expandBraces(word.text, "whole") : [word.text];
  if (texts === undefined) return { ok: false, why: `has braces for more than ${LIMITS.words} words` };
  const words: PlanWord[] = [];
  for (const text of texts) {
    const read = readWord(text);
    if (typeof read === "string") return { ok: false, why: read };
    if (texts.length === 1 && typeof read.word === "string" && read.word !== word.value) {
      return { ok: false, why: "has a word that can be read in two ways" };
    }
    words.push(read.word);
  }
  return { ok: true, words };
}

// A backslash too: behind it may be the end of a line, and the name of a variable on the next.
const VARIABLE = /[A-Za-z0-9_{(@*#?$!'"[\\-]/;
const VARIABLE_IN_QUOTES = /[A-Za-z0-9_{(@*#?$![\\-]/;
const EXPANDS = "has a variable or a substitution in it";

interface Reader {
  readonly text: string;
  at: number;
  /** The text without quotes. */
  value: string;
  /** The text as a pattern, in which what was quoted is escaped. */
  pattern: string;
  isPattern: boolean;
}

function readWord(text: string): { word: PlanWord } | string {
  const reader: Reader = { text, at: 0, value: "", pattern: "", isPattern: false };
  const home = /^~(?:\/|$)/.test(text);
  if (home) reader.at = 1;
  else if (text.startsWith("~") || /^[A-Za-z_]\w*\+?=(?:.*:)?~/.test(text)) return "names another home folder";
  while (reader.at < text.length) {
    const problem = readNext(reader);
    if (problem !== undefined) return problem;
  }
  if (!reader.isPattern) return { word: home ? { home: reader.value } : reader.value };
  if (home) return "has a pattern below the home folder";
  return { word: { glob: reader.pattern } };
}

function readNext(reader: Reader): string | undefined {
  const { text, at } = reader;
  const char = text[at] ?? "";
  switch (char) {
    case "\\":
      if (text[at + 1] === undefined) return "ends in a backslash";
      if (text[at + 1] !== "\n") quoted(reader, text[at + 1] ?? "");
      reader.at += 2;
      return undefined;
    case "'":
      return readUntil(reader, at + 1, "'", (inner) => inner);
    case '"':
      return readDouble(reader);
    case "$":
      if (text[at + 1] === "'") return readAnsi(reader);
      if (VARIABLE.test(text[at + 1] ?? " ")) return EXPANDS;
      break;
    case "`":
      return EXPANDS;
    case "[":
      if (!text.includes("]", at)) break;
      return readPattern(reader, char);
    case "*":
    case "?":
      return readPattern(reader, char);
    default:
      if (/[\s()<>|&;]/.test(char)) return "has a character in it that the shell acts on";
  }
  reader.value += char;
  reader.pattern += /[\]!^-]/.test(char) ? char : escaped(char);
  reader.at += 1;
  return undefined;
}

function readPattern(reader: Reader, char: string): undefined {
  reader.isPattern = true;
  reader.value += char;
  reader.pattern += char;
  reader.at += 1;
}

function quoted(reader: Reader, text: string): void {
  reader.value += text;
  reader.pattern += escaped(text);
}

function escaped(text: string): string {
  return text.replace(/[\\*?[\]!^-]/g, "\\$&");
}

function readUntil(reader: Reader, from: number, close: string, decode: (inner: string) => string): string | undefined {
  const end = reader.text.indexOf(close, from);
  if (end < 0) return "has a quote without an end";
  quoted(reader, decode(reader.text.slice(from, end)));
  reader.at = end + 1;
  return undefined;
}

function readDouble(reader: Reader): string | undefined {
  const { text } = reader;
  for (let at = reader.at + 1; at < text.length; at++) {
    const char = text[at] ?? "";
    const after = text[at + 1] ?? "";
    if (char === '"') {
      reader.at = at + 1;
      return undefined;
    }
    if (char === "`" || (char === "$" && VARIABLE_IN_QUOTES.test(after))) return EXPANDS;
    if (char === "\\" && /[$`"\\\n]/.test(after)) {
      if (after !== "\n") quoted(reader, after);
      at += 1;
    } else quoted(reader, char);
  }
  return "has a quote without an end";
}

const ANSI: ReadonlyMap<string, string> = new Map(
  Object.entries({ n: "\n", t: "\t", "\\": "\\", "'": "'", '"': '"', "?": "?" }),
);

/** `$'…'`, with the escapes that stand for visible characters, tabs and line ends. */
function readAnsi(reader: Reader): string | undefined {
  const { text } = reader;
  for (let at = reader.at + 2; at < text.length; at++) {
    const char = text[at] ?? "";
    if (char === "'") {
      reader.at = at + 1;
      return undefined;
    }
    if (char !== "\\") {
      quoted(reader, char);
      continue;
    }
    const hex = /^x([2-7][0-9a-fA-F])/.exec(text.slice(at + 1));
    const code = hex?.[1];
    const plain = code === undefined ? ANSI.get(text[at + 1] ?? "") : String.fromCharCode(Number.parseInt(code, 16));
    if (plain === undefined || plain === "\x7f") return "has an escape in it that is not followed";
    quoted(reader, plain);
    at += code === undefined ? 1 : 3;
  }
  return "has a quote without an end";
}
