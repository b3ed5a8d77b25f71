import type { PlanWord } from "../plan/plan.ts";
import type { Flag, Grammar } from "./grammar.ts";
import { KINDS } from "./kinds.ts";
import { type PathUse, type Place, pathProblem } from "./paths.ts";

/** What the words of a command are: allowed, with those that a rule puts in, or why not. */
export type Checked = { ok: true; words: PlanWord[] } | { ok: false; why: string };

interface Read {
  operands: PlanWord[];
  flags: Set<string>;
  /** Values of options that are paths. */
  paths: PlanWord[];
}

/** Checks the words behind a program's name against its grammar. Pure. */
export function checkProgram(grammar: Grammar, words: readonly PlanWord[], place: Place): Checked {
  if (words.length === 1 && isHelp(words[0])) return { ok: true, words: [...words] };
  const [first, ...others] = words;
  if (typeof first !== "string" || !grammar.usage.bundle?.test(first)) return checkWords(grammar, words, place);
  const checked = checkWords(grammar, [`-${first}`, ...others], place);
  return checked.ok ? { ok: true, words: [...words] } : checked;
}

function checkWords(grammar: Grammar, words: readonly PlanWord[], place: Place): Checked {
  const { usage, subcommands } = grammar;
  const at = subcommands.size === 0 ? words.length : subcommandAt(grammar, words);
  const own = subcommands.size === 0 ? words : words.slice(0, at);
  const read = readWords(grammar, own);
  if (typeof read === "string") return no(read);
  const inner = words[at];
  if (subcommands.size > 0 && inner !== undefined) {
    const grammarOfInner = typeof inner === "string" ? subcommands.get(inner) : undefined;
    if (grammarOfInner === undefined) return no(`${shown(inner)} is not on its list`);
    const checked = checkWords(grammarOfInner, words.slice(at + 1), place);
    if (!checked.ok) return checked;
    return { ok: true, words: [...own, inner, ...(grammarOfInner.usage.extra ?? []), ...checked.words] };
  }
  if (subcommands.size > 0 && usage.bare !== true) return no("it needs a subcommand that is on its list");
  const why = problemOf(grammar, read, words, place);
  return why === undefined ? { ok: true, words: [...words] } : no(why);
}

/** `--help` and `--version` alone say what a program is, and do nothing. */
function isHelp(word: PlanWord | undefined): boolean {
  return word === "--help" || word === "--version";
}

function no(why: string): Checked {
  return { ok: false, why };
}

function shown(word: PlanWord): string {
  return typeof word === "string" ? JSON.stringify(word) : JSON.stringify("home" in word ? `~${word.home}` : word.glob);
}

/** The place of the first word that is neither an option nor an option's value. */
function subcommandAt(grammar: Grammar, words: readonly PlanWord[]): number {
  for (let at = 0; at < words.length; at++) {
    const word = words[at];
    if (typeof word !== "string" || !/^-./.test(word)) return at;
    if (grammar.flags.get(word)?.value === "required") at += 1;
  }
  return words.length;
}

function readWords(grammar: Grammar, words: readonly PlanWord[]): Read | string {
  const read: Read = { operands: [], flags: new Set(), paths: [] };
  const queue = [...words];
  for (let word = queue.shift(); word !== undefined; word = queue.shift()) {
    if (word === "--" && grammar.usage.style !== "single") {
      read.operands.push(...queue);
      return read;
    }
    // A pattern begins with a letter or the like, so no name that it stands for is an option.
    if (typeof word !== "string" || !/^-./.test(word)) {
      if (isValueOfOption(grammar, word)) continue;
      if (typeof word === "object" && "glob" in word && /^(?:[*?[-]|$)/.test(word.glob))
        return `${shown(word)} may stand for an option`;
      if (typeof word !== "string" || !grammar.punctuation.has(word)) read.operands.push(word);
      continue;
    }
    const problem =
      word.startsWith("--") || grammar.usage.style === "single"
        ? readLong(grammar, word, queue, read)
        : readShort(grammar, word, queue, read);
    if (problem !== undefined) return problem;
  }
  return read;
}

/** "--include=*.ts": every name that it stands for begins so, and is the option with another value, of a kind that takes any. */
function isValueOfOption({ flags }: Grammar, word: PlanWord): boolean {
  if (typeof word !== "object" || !("glob" in word)) return false;
  const name = /^(--[a-z][a-z-]*)=/.exec(word.glob)?.[1] ?? "";
  return /^(?:any|mask)$/.test(flags.get(name)?.kind ?? "");
}

function readLong(grammar: Grammar, word: string, queue: PlanWord[], read: Read): string | undefined {
  const cut = word.indexOf("=");
  const name = cut < 0 ? word : word.slice(0, cut);
  const flag = grammar.flags.get(name);
  if (flag === undefined || (grammar.usage.style === "single" && cut >= 0))
    return `its option ${JSON.stringify(name)} is not on its list`;
  read.flags.add(name);
  if (flag.value === "none") return cut < 0 ? undefined : `its option ${JSON.stringify(name)} takes no value`;
  if (cut >= 0) return readValue(name, flag, word.slice(cut + 1), read);
  return flag.value === "optional" ? undefined : readValue(name, flag, queue.shift(), read);
}

function readShort(grammar: Grammar, word: string, queue: PlanWord[], read: Read): string | undefined {
  if (grammar.numbers && /^-\d{1,9}$/.test(word)) return undefined;
  for (let at = 1; at < word.length; at++) {
    const name = `-${word[at] ?? ""}`;
    const flag = grammar.flags.get(name);
    if (flag === undefined) return `its option ${JSON.stringify(name)} is not on its list`;
    read.flags.add(name);
    if (flag.value === "none") continue;
    const rest = word.slice(at + 1);
    if (flag.value === "optional") return rest === "" ? undefined : readValue(name, flag, rest, read);
    return readValue(name, flag, rest === "" ? queue.shift() : rest, read);
  }
  return undefined;
}

function readValue(name: string, flag: Flag, value: PlanWord | undefined, read: Read): string | undefined {
  if (value === undefined) return `its option ${JSON.stringify(name)} needs a value`;
  if (isPath(flag.kind)) {
    read.paths.push(value);
    return typeof value === "object" && "glob" in value ? `${shown(value)} is a pattern` : undefined;
  }
  return isOfKind(flag.kind, value) ? undefined : `its option ${JSON.stringify(name)} may not be ${shown(value)}`;
}

function isPath(kind: string): boolean {
  return kind === "path" || kind === "file" || kind === "tree";
}

function isOfKind(kind: string, value: PlanWord): boolean {
  if (typeof value !== "string") return false;
  const test = KINDS.get(kind);
  return test === undefined ? kind.split("|").includes(value) : test(value);
}

function problemOf(grammar: Grammar, read: Read, words: readonly PlanWord[], place: Place): string | undefined {
  const { usage } = grammar;
  if (grammar.needs.size > 0 && ![...grammar.needs].some((flag) => read.flags.has(flag))) {
    return `it needs one of ${[...grammar.needs].join(", ")}`;
  }
  const deep = usage.recursive === "always" || [...grammar.recursive].some((flag) => read.flags.has(flag));
  const replaced = [...grammar.instead].some((flag) => read.flags.has(flag));
  const why = operandProblem(grammar, read, { deep, replaced }, place);
  if (why !== undefined) return why;
  for (const path of read.paths) {
    const problem = pathProblem(path, "read", place);
    if (problem !== undefined) return problem;
  }
  if (usage.check === undefined) return undefined;
  const texts = words.map((word) => (typeof word === "string" ? word : "home" in word ? `~${word.home}` : word.glob));
  return usage.check(texts);
}

function operandProblem(
  { operands: slots, usage }: Grammar,
  { operands }: Read,
  { deep, replaced }: { deep: boolean; replaced: boolean },
  place: Place,
): string | undefined {
  let at = 0;
  let paths = 0;
  for (const [index, { kind, least, most }] of slots.entries()) {
    if (index === 0 && replaced) continue;
    let count = 0;
    while (count < most && at < operands.length) {
      const word = operands[at] as PlanWord;
      if (isPath(kind)) {
        const problem = word === "-" ? undefined : pathProblem(word, useOf(kind, deep), place);
        if (problem !== undefined) return problem;
        paths += 1;
      } else if (!isOfKind(kind, word)) {
        if (most === Number.POSITIVE_INFINITY || least === 0) break;
        return `${shown(word)} is not on its list`;
      }
      count += 1;
      at += 1;
    }
    if (count < least) return "it has too few operands";
  }
  if (at < operands.length) return `${shown(operands[at] ?? "")} is not on its list`;
  if (paths === 0 && (usage.here === true || deep)) return pathProblem(".", deep ? "tree" : "name", place);
  return undefined;
}

/** "path" is a name, whose size or kind is shown; "file" is read. */
function useOf(kind: string, deep: boolean): PathUse {
  if (kind === "tree" || deep) return "tree";
  return kind === "file" ? "read" : "name";
}
