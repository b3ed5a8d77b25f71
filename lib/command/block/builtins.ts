import { runScript } from "./inner.ts";
import { contentOf, type Manner, runWords } from "./run.ts";
import { assign, nested, type State, UNKNOWN } from "./state.ts";
import { canonicalPath } from "./targets.ts";
import { walkBody } from "./walk.ts";

/** Builtins whose arguments are assignments. */
export function declares(name: string): boolean {
  return /^(?:declare|typeset|local|export|readonly)$/.test(name);
}

type Builtin = (args: readonly string[], state: State, manner: Manner) => string;

/** What the shell itself does for a command; undefined where it is another program. */
export function runBuiltin(argv: readonly string[], state: State, manner: Manner): string | undefined {
  const [name = "", ...args] = argv;
  const body = state.functions.get(name);
  if (body !== undefined) {
    if (state.calls.includes(name)) return "";
    return walkBody(body, nested(state, { positional: args, calls: [...state.calls, name] }), manner.detached);
  }
  return BUILTINS.get(name)?.(args, state, manner);
}

const cd: Builtin = (args, state) => {
  const operands = args.filter((word) => !/^-[LPe@]+$/.test(word));
  const target = operands[0] ?? "~";
  state.folder = target === "-" ? undefined : canonicalPath(target, state.folder);
  return "";
};

const source: Builtin = (args, state) => runScript(contentOf(args[0] ?? "", state), state);

const declare: Builtin = (args, state) => {
  for (const word of args) {
    const [, name = "", value] = /^(\w+)(?:=([\s\S]*))?$/.exec(word) ?? [];
    if (name !== "" && value !== undefined) assign(state, name, [value]);
  }
  return "";
};

const BUILTINS: ReadonlyMap<string, Builtin> = new Map<string, Builtin>([
  ["cd", cd],
  ["pushd", cd],
  ["eval", (args, state) => runScript(args.join(" "), state, { inPlace: true })],
  [".", source],
  ["source", source],
  ["trap", (args, state) => runScript(args[0] === "--" ? (args[1] ?? "") : (args[0] ?? ""), state)],
  ["declare", declare],
  ["typeset", declare],
  ["local", declare],
  ["export", declare],
  ["readonly", declare],
  ["set", setPositional],
  ["shift", shift],
  ["unset", unset],
  ["read", read],
  ["mapfile", readLines],
  ["readarray", readLines],
  ["alias", alias],
  [
    "exec",
    (args, state, manner) =>
      args.length === 0
        ? ""
        : runWords(
            args[0] === "-a" ? args.slice(2) : args.filter((word, at) => at > 0 || !/^-[cl]+$/.test(word)),
            state,
            manner,
          ),
  ],
  [
    "command",
    (args, state, manner) =>
      /^-[vV]+$/.test(args[0] ?? "")
        ? (args[1] ?? "")
        : runWords(
            args.filter((word, at) => at > 0 || word !== "-p"),
            state,
            manner,
          ),
  ],
  ["builtin", (args, state, manner) => runWords(args, state, manner)],
  ["pwd", (_, state) => state.folder ?? UNKNOWN],
]);

function setPositional(args: readonly string[], state: State): string {
  const start = args.findIndex((word) => !/^[-+][A-Za-z]/.test(word));
  if (start >= 0) state.positional = args[start] === "--" ? args.slice(start + 1) : args.slice(start);
  return "";
}

function shift(args: readonly string[], state: State): string {
  state.positional = state.positional.slice(Number(args[0] ?? 1) || 1);
  return "";
}

function unset(args: readonly string[], state: State): string {
  for (const name of args) state.vars.delete(name);
  return "";
}

function read(args: readonly string[], state: State): string {
  const names = args.filter((word, at) => /^\w+$/.test(word) && !/^-[A-Za-z]*[adinNptu]$/.test(args[at - 1] ?? ""));
  const [line = "", ...others] = (state.stdin ?? UNKNOWN).split("\n");
  state.stdin = others.join("\n");
  const words = line.trim().split(/[ \t]+/);
  for (const [at, name] of (names.length === 0 ? ["REPLY"] : names).entries()) {
    assign(state, name, [at === names.length - 1 ? words.slice(at).join(" ") : (words[at] ?? "")]);
  }
  return "";
}

function readLines(args: readonly string[], state: State): string {
  const name = args.findLast((word) => /^\w+$/.test(word)) ?? "MAPFILE";
  assign(state, name, (state.stdin ?? UNKNOWN).replace(/\n$/, "").split("\n"));
  return "";
}

function alias(args: readonly string[], state: State): string {
  for (const word of args) {
    const [, name = "", text = ""] = /^([^=]+)=([\s\S]*)$/.exec(word) ?? [];
    if (name === "") continue;
    state.aliases.set(name, text);
    runScript(text, state);
  }
  return "";
}
