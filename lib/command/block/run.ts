import type { Assignment, CommandArgument, Redirection, Word } from "unbash";
import { declares, runBuiltin } from "./builtins.ts";
import { runInner, runScript } from "./inner.ts";
import { outputOf } from "./output.ts";
import { assign, type State, spend, UNKNOWN } from "./state.ts";
import { canonicalPath } from "./targets.ts";
import { substitute } from "./walk.ts";
import { fieldsOf, textOf } from "./words.ts";

/** A simple command, or the redirections of a compound one. */
interface Simple {
  readonly name: Word | undefined;
  readonly prefix: readonly (Assignment | Redirection)[];
  readonly args: readonly CommandArgument[];
  readonly redirects: readonly Redirection[];
}

/** Runs a command: its words, its redirections, then what it does as far as the rules care. Returns what it prints. */
export function runSimple(node: Simple, state: State, detached: boolean, printed = ""): string {
  const outer = state.stdin;
  for (const part of node.prefix) if (part.type === "Assignment") assignPart(part, state);
  const argv = node.name === undefined ? [] : wordsOf(node, state);
  const { writes, appends } = redirected(node.redirects, state);
  const output = node.name === undefined ? printed : runWords(argv, state, { writes, appends, detached });
  if (node.name === undefined && (writes.length > 0 || appends.length > 0))
    step([], state, { writes, appends, detached });
  for (const file of [...writes, ...appends]) remember(file, output, state);
  state.stdin = outer;
  return writes.length > 0 ? "" : output;
}

/** How a command is run. */
export interface Manner {
  writes: readonly string[];
  appends: readonly string[];
  detached: boolean;
}

const PLAIN: Manner = { writes: [], appends: [], detached: false };

/** Runs the words of a command that no shell reads any more. */
export function runWords(argv: readonly string[], state: State, manner: Manner = PLAIN): string {
  const words = withAlias(argv, state);
  const program = step(words, state, manner);
  if (program === "") return "";
  if (program === "tee") for (const file of words.slice(1)) remember(file, state.stdin ?? "", state);
  const inner = runBuiltin(words, state, manner) ?? runInner(words, state, manner);
  return inner ?? outputOf(words, state);
}

/** Notes one command for the rules, and returns its program. */
function step(argv: readonly string[], state: State, { writes, appends, detached }: Manner): string {
  spend(state);
  const program = (argv[0] ?? "").replace(/^.*\//, "");
  const { folder } = state;
  state.found.steps.push({ program, args: argv.slice(1), writes, appends, folder, detached });
  return program;
}

function wordsOf(node: Simple, state: State): string[] {
  const words = node.name === undefined ? [] : fieldsOf([node.name], state, substitute);
  const declaring = declares(words[0] ?? "");
  for (const arg of node.args) {
    if (arg.type === "Word") words.push(...fieldsOf([arg], state, substitute));
    else if (declaring) assignPart(arg, state);
    else words.push(`${arg.name}=${arg.value.type === "Word" ? textOf(arg.value, state, substitute) : UNKNOWN}`);
  }
  return words;
}

/** Variables whose value another program runs. */
const RUN_BY_OTHERS = /^(?:PROMPT_COMMAND|PS4|EDITOR|VISUAL|BROWSER|LESSOPEN|\w*PAGER|\w+_(?:COMMAND|CMD|EDITOR))$/;

function assignPart(part: Assignment, state: State): void {
  const before = part.append ? (state.vars.get(part.name) ?? []) : [];
  if (part.value.type === "ArrayValue") {
    const values = fieldsOf(part.value.elements, state, substitute).map((value) => value.replace(/^\[[^\]]*\]=/, ""));
    assign(state, part.name, [...before, ...values]);
    return;
  }
  const value = textOf(part.value, state, substitute);
  if (RUN_BY_OTHERS.test(part.name)) runScript(value, state);
  if (part.index === undefined) {
    assign(state, part.name, [`${before[0] ?? ""}${value}`]);
    return;
  }
  const values = [...(state.vars.get(part.name) ?? [])];
  const index = Number(textOf(part.index, state, substitute));
  if (Number.isInteger(index) && index >= 0 && index < 64) values[index] = value;
  assign(
    state,
    part.name,
    Array.from(values, (each) => each ?? ""),
  );
}

function redirected(redirects: readonly Redirection[], state: State): { writes: string[]; appends: string[] } {
  const writes: string[] = [];
  const appends: string[] = [];
  for (const redirect of redirects) {
    if (redirect.type === "HereDoc") state.stdin = hereText(redirect, state);
    else if (redirect.type === "HereString") state.stdin = `${textOf(redirect.target, state, substitute)}\n`;
    else {
      const file = textOf(redirect.target, state, substitute);
      const isDescriptor = /^[<>]&$/.test(redirect.operator) && /^(?:\d+-?|-)$/.test(file);
      if (isDescriptor) continue;
      if (redirect.operator === "<") state.stdin = contentOf(file, state);
      else if (/>>$/.test(redirect.operator)) appends.push(file);
      else writes.push(file);
    }
  }
  return { writes, appends };
}

function hereText(redirect: Extract<Redirection, { type: "HereDoc" }>, state: State): string {
  const text = redirect.operator === "<<-" ? redirect.body.text.replace(/^\t+/gm, "") : redirect.body.text;
  if (redirect.delimiter?.quoted === true || redirect.body.parts === undefined) return text;
  const word = { type: "Word", value: text, text, parts: redirect.body.parts } as unknown as Word;
  return textOf(word, state, substitute);
}

function remember(file: string, output: string, state: State): void {
  const path = canonicalPath(file, state.folder);
  if (output !== "" && state.files.size < 32) state.files.set(path, `${state.files.get(path) ?? ""}${output}`);
}

/** What a file holds that the script itself has written. */
export function contentOf(file: string, state: State): string {
  if (/^\/(?:dev\/stdin|dev\/fd\/0|proc\/self\/fd\/0)$/.test(file)) return state.stdin ?? UNKNOWN;
  return state.files.get(canonicalPath(file, state.folder)) ?? UNKNOWN;
}

/** Puts an alias's text in place of its name: a shell that has aliases switched on runs it. */
function withAlias(argv: readonly string[], state: State): readonly string[] {
  const alias = state.aliases.get(argv[0] ?? "");
  return alias === undefined ? argv : [...alias.split(/\s+/), ...argv.slice(1)];
}
