import type { ParsedScript, Word, WordPart } from "unbash";
import { LIMITS, TooComplex } from "../limits.ts";
import { expandBraces } from "../shell/braces.ts";
import { parseWord } from "../shell/parse.ts";
import { expansionOf, valuesOf } from "./parameter.ts";
import { type State, UNKNOWN } from "./state.ts";

/** Runs a substitution and returns what it prints, as far as that is known. */
export type Substitute = (script: ParsedScript | undefined, state: State) => string;

/** The words that a shell makes of words: without quotes, with braces and known variables put in, split. */
export function fieldsOf(words: readonly Word[], state: State, substitute: Substitute): string[] {
  return words.flatMap((word) => fieldsOfWord(word, state, substitute));
}

/** A word that is not split: an assignment's value, a redirection's target. */
export function textOf(word: Word | undefined, state: State, substitute: Substitute): string {
  if (word === undefined) return "";
  const parts = word.parts;
  return parts === undefined ? word.value : parts.map((part) => textOfPart(part, state, substitute)).join("");
}

function fieldsOfWord(word: Word, state: State, substitute: Substitute): string[] {
  const parts = word.parts;
  if (parts === undefined) return [word.value];
  if (!word.text.includes("{") || !parts.some((part) => part.type === "BraceExpansion")) {
    return split(parts, state, substitute);
  }
  // No block rule asks which number of many it is, and a loop over them all would be too long to follow.
  const texts = expandBraces(word.text, "ends");
  if (texts === undefined) throw new TooComplex(`has braces for more than ${LIMITS.words} words`);
  return texts.flatMap((text) => {
    const inner = parseWord(text);
    if (inner === undefined) return [];
    return inner.parts === undefined ? [inner.value] : split(inner.parts, state, substitute);
  });
}

function split(parts: readonly WordPart[], state: State, substitute: Substitute): string[] {
  const fields: string[] = [];
  let current: string | undefined;
  const add = (text: string): void => {
    current = (current ?? "") + text;
  };
  const end = (): void => {
    if (current !== undefined) fields.push(current);
    current = undefined;
  };
  const separators = valuesOf(state, "IFS")[0] ?? "";
  for (const part of parts) {
    if (isExpansion(part)) {
      for (const [index, value] of valuesOfPart(part, state, substitute).entries()) {
        if (index > 0) end();
        for (const [at, piece] of pieces(value, separators).entries()) {
          if (at > 0) end();
          if (piece !== "") add(piece);
        }
      }
    } else if (part.type === "DoubleQuoted" && isAllPositional(part)) {
      for (const [index, value] of valuesOfPart(part.parts[0] as WordPart, state, substitute).entries()) {
        if (index > 0) end();
        add(value);
      }
    } else add(textOfPart(part, state, substitute));
  }
  end();
  return fields;
}

function isExpansion(part: WordPart): boolean {
  return /^(?:SimpleExpansion|ParameterExpansion|CommandExpansion|ArithmeticExpansion)$/.test(part.type);
}

/** True for "$@" and `\${array[@]}`, which stay several words inside quotes. */
function isAllPositional(part: Extract<WordPart, { type: "DoubleQuoted" }>): boolean {
  const [only] = part.parts;
  return part.parts.length === 1 && only !== undefined && /^\$@$|^\$\{(?:@|\w+\[@\])\}$/.test(only.text);
}

function pieces(value: string, separators: string): string[] {
  const class_ = separators.replace(/[\\\]^-]/g, "\\$&");
  return class_ === "" ? [value] : value.split(new RegExp(`[${class_}]+`));
}

function textOfPart(part: WordPart, state: State, substitute: Substitute): string {
  switch (part.type) {
    case "Literal":
    case "SingleQuoted":
    case "AnsiCQuoted":
      return part.value;
    case "Glob":
      return part.text;
    case "DoubleQuoted":
    case "LocaleString":
      return part.parts.map((inner) => textOfPart(inner, state, substitute)).join("");
    default:
      return isExpansion(part) ? valuesOfPart(part, state, substitute).join(" ") : otherText(part, state, substitute);
  }
}

function otherText(part: WordPart, state: State, substitute: Substitute): string {
  if (part.type !== "ProcessSubstitution") return part.text;
  const output = substitute(part.script, state);
  const path = `/dev/fd/${state.files.size + 60}`;
  state.files.set(path, output);
  return path;
}

function valuesOfPart(part: WordPart, state: State, substitute: Substitute): readonly string[] {
  if (part.type === "SimpleExpansion") return simple(valuesOf(state, part.text.slice(1)), part.text);
  if (part.type === "ParameterExpansion") {
    return expansionOf(state, part, (word) => textOf(word, state, substitute));
  }
  if (part.type === "CommandExpansion") return [substitute(part.script, state).replace(/\n+$/, "")];
  if (part.type === "ArithmeticExpansion") return [arithmetic(part.text)];
  return [part.text];
}

function simple(values: readonly string[], text: string): readonly string[] {
  return text === "$@" || text === "$*" ? values : values.slice(0, 1);
}

/** Sums of small numbers are known; other arithmetic is not followed. */
function arithmetic(text: string): string {
  const match = /^\$\(\(\s*(\d{1,6})\s*(?:([-+*])\s*(\d{1,6})\s*)?\)\)$/.exec(text);
  if (match === null) return UNKNOWN;
  const [, left = "", operator, right = "0"] = match;
  const [a, b] = [Number(left), Number(right)];
  if (operator === "*") return String(a * b);
  return String(operator === "-" ? a - b : a + b);
}
