import { forEachChild, type ParsedScript, type SyntaxNode } from "unbash";
import { TooComplex } from "../limits.ts";
import { parseShell } from "../shell/parse.ts";
import { deleteRules } from "./rules/delete.ts";
import { deviceRules } from "./rules/devices.ts";
import { FORK_BOMB, machineRules } from "./rules/machine.ts";
import { packageRules } from "./rules/packages.ts";
import type { BlockRule } from "./rules/rule.ts";
import { runWords } from "./run.ts";
import { hasForkBomb } from "./shapes.ts";
import { newState, type State } from "./state.ts";
import { walkScript } from "./walk.ts";

/** All rules, in the order in which they are tried. */
export const BLOCK_RULES: readonly BlockRule[] = [...deleteRules, ...deviceRules, ...machineRules, ...packageRules];

/**
 * The rules that a shell text matches, whatever the caller's rights. It is a seat belt against accidents, not a boundary: text
 * can always be written so that no look at it finds what it does. Throws TooComplex.
 */
export function blockedText(text: string, folder?: string): BlockRule[] {
  const state = newState(folder);
  const { script, valid } = parseShell(text);
  if (hasForkBomb(script)) state.found.shapes.add("fork-bomb");
  walkScript(script, state);
  walkRest(script, state);
  // What is not valid is not run whole, but bash runs the lines before the error.
  if (!valid) for (const piece of text.split(/\n|;/)) walkPiece(piece, state);
  return matched(state, valid ? "" : text);
}

/** The rules that an argument list matches, which no shell reads. Throws TooComplex. */
export function blockedArgv(argv: readonly string[], stdin: string | undefined, folder?: string): BlockRule[] {
  const state = newState(folder);
  state.stdin = stdin;
  runWords(argv, state);
  return matched(state, "");
}

/** The program of an argument list and those that it runs, as far as its arguments show them. */
export function programsOf(argv: readonly string[]): string[] {
  const state = newState(undefined);
  try {
    runWords(argv, state);
  } catch (e: unknown) {
    if (!(e instanceof TooComplex)) throw e;
  }
  return state.found.steps.map(({ program }) => program);
}

/** Follows the substitutions that stand where the walk does not look, such as in arithmetic and tests. */
function walkRest(script: ParsedScript, state: State): void {
  const open: SyntaxNode[] = [script];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (node.type === "Script" && node !== script && !state.found.walked.has(node)) walkScript(node, state);
    forEachChild(node, (child) => void open.push(child));
  }
}

function walkPiece(piece: string, state: State): void {
  try {
    walkScript(parseShell(piece).script, { ...newState(state.folder), found: state.found });
  } catch (e: unknown) {
    if (!(e instanceof TooComplex)) throw e;
  }
}

/** A fork bomb in a text that is no valid script. */
const WRITTEN_BOMB = /(\S+?)\s*\(\s*\)\s*\{?\s*\{?\s*(\1)\s*\|\s*\1\s*&/;

function matched({ found }: State, invalid: string): BlockRule[] {
  const bomb = found.shapes.has("fork-bomb") || WRITTEN_BOMB.test(invalid);
  return BLOCK_RULES.filter((rule) => (rule.name === FORK_BOMB && bomb) || found.steps.some((step) => rule.test(step)));
}
