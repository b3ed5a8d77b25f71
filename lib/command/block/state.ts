import type { CompoundCommand, CompoundList, Redirected } from "unbash";
import { LIMITS, TooComplex } from "../limits.ts";

/** Stands in a text for what cannot be known before the command runs. A private-use character: no rule names it. */
export const UNKNOWN = "\uf8ff";

/** A command as the block rules see it: unwrapped, without quotes, its variables put in where they are known. */
export interface Step {
  /** The program's name without its folder. Empty where there are only redirections. */
  program: string;
  args: readonly string[];
  /** The files that its redirections replace. */
  writes: readonly string[];
  /** The files that its redirections write at the end of. */
  appends: readonly string[];
  /** The folder it runs in, where that is known. */
  folder: string | undefined;
  /** True behind "|" or before "&". */
  detached: boolean;
}

export type Body = CompoundCommand | Redirected | CompoundList;

/** What the block scan knows while it follows a script. */
export interface State {
  readonly vars: Map<string, readonly string[]>;
  readonly functions: Map<string, Body>;
  readonly aliases: Map<string, string>;
  /** What the script itself has written, by path. */
  readonly files: Map<string, string>;
  positional: readonly string[];
  folder: string | undefined;
  /** What a command reads, where it is known. */
  stdin: string | undefined;
  /** Names of the functions whose bodies this is in. */
  readonly calls: readonly string[];
  /** How many scripts this one is inside of. */
  readonly depth: number;
  readonly found: Found;
}

/** What is shared by all parts of one scan. */
export interface Found {
  readonly steps: Step[];
  /** Ids of rules that a shape of the script matches, such as a fork bomb. */
  readonly shapes: Set<string>;
  left: number;
  /** The scripts of substitutions that were followed. */
  readonly walked: WeakSet<object>;
}

export function newState(folder: string | undefined): State {
  return {
    vars: new Map(),
    functions: new Map(),
    aliases: new Map(),
    files: new Map(),
    positional: [],
    folder,
    stdin: undefined,
    calls: [],
    depth: 0,
    found: { steps: [], shapes: new Set(), left: LIMITS.steps, walked: new WeakSet() },
  };
}

/** The state of a subshell: what it sets is lost when it ends. */
export function subshell(state: State, changes: Partial<State> = {}): State {
  return { ...state, vars: new Map(state.vars), functions: new Map(state.functions), ...changes };
}

/** The state of a script inside this one. Throws TooComplex. */
export function nested(state: State, changes: Partial<State> = {}): State {
  if (state.depth >= LIMITS.wrappers)
    throw new TooComplex(`runs commands in commands more than ${LIMITS.wrappers} deep`);
  return { ...subshell(state, changes), depth: state.depth + 1 };
}

/** Counts one more command. Throws TooComplex. */
export function spend(state: State): void {
  state.found.left -= 1;
  if (state.found.left < 0) throw new TooComplex("does too much to be followed");
}

export function assign(state: State, name: string, values: readonly string[]): void {
  state.vars.set(name, values);
}
