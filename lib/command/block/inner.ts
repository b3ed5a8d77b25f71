import { parseShell } from "../shell/parse.ts";
import { scriptsInCode } from "./code.ts";
import { commandOptions } from "./command-options.ts";
import { containerCommand } from "./containers.ts";
import { isNarrowed, searchedFolders } from "./options.ts";
import { contentOf, type Manner, runWords } from "./run.ts";
import { hasForkBomb } from "./shapes.ts";
import { nested, type State, UNKNOWN } from "./state.ts";
import { walkScript } from "./walk.ts";
import { afterOptions, valuesOf, WRAPPERS } from "./wrappers.ts";

const SHELLS = /^(?:ba|da|z|k|mk|a|fi|tc|c|rba|ya|ha)?sh\d*$/;

/** Interpreters whose programs may run commands, without version numbers. */
const INTERPRETERS =
  /^(?:python|pypy|perl|ruby|node|nodejs|deno|bun|php|lua|luajit|tclsh|[gmn]?awk|Rscript|osascript|expect|groovy|elixir|guile|irb)$/;

/** Runs a text as a script inside the one that is followed. Returns what it prints. */
export function runScript(text: string, state: State, { inPlace = false } = {}): string {
  if (text === "" || text === UNKNOWN) return "";
  const { script } = parseShell(text);
  if (hasForkBomb(script)) state.found.shapes.add("fork-bomb");
  const inner = nested(state);
  const output = walkScript(script, inPlace ? { ...inner, vars: state.vars, functions: state.functions } : inner);
  if (inPlace) state.folder = inner.folder;
  return output;
}

/** Follows the commands that a program runs; returns what they print, or undefined where it runs none. */
export function runInner(argv: readonly string[], state: State, manner: Manner): string | undefined {
  const [path = "", ...args] = argv;
  const program = path.replace(/^.*\//, "");
  for (const text of commandOptions(program, args)) runScript(text, state);
  if (SHELLS.test(program)) return runShell(args, state);
  const base = program.replace(/[-.\d]+$/, "");
  if (INTERPRETERS.test(base)) return runCode(base, args, state);
  const reader = READERS.get(program);
  if (reader !== undefined) return reader(args, state, manner);
  const container = containerCommand(program, args);
  if (container !== undefined) return container.length === 0 ? "" : runWords(container, nested(state), manner);
  const wrapper = WRAPPERS.get(program);
  if (wrapper === undefined) return state.files.size > 0 && path.includes("/") ? runFile(path, args, state) : undefined;
  const words = withoutVariables(afterOptions(args, wrapper), program, state);
  const [only = ""] = words;
  if (wrapper.shell === true && (words.length === 1 || program !== "flock")) return runScript(words.join(" "), state);
  if (words.length === 1 && /\s/.test(only)) return runScript(only, state);
  return words.length === 0 ? withoutCommand(program, args, state) : runWords(words, nested(state), manner);
}

/** `sudo -s`, `sudo -i`: a shell that reads what comes in. */
function withoutCommand(program: string, args: readonly string[], state: State): string {
  const opens = /^(?:sudo|doas|pkexec|unshare|chroot|nsenter)$/.test(program) || args.length === 0;
  return opens && state.stdin !== undefined ? runScript(state.stdin, state) : "";
}

function withoutVariables(words: readonly string[], program: string, state: State): readonly string[] {
  const start = words.findIndex((word) => !/^[A-Za-z_]\w*\+?=/.test(word));
  if (program !== "env" && program !== "sudo" && program !== "doas") return words;
  for (const word of start < 0 ? words : words.slice(0, start)) {
    state.vars.set(word.slice(0, word.indexOf("=")), [word.slice(word.indexOf("=") + 1)]);
  }
  return start < 0 ? [] : words.slice(start);
}

function runShell(args: readonly string[], state: State): string {
  const at = args.findIndex((word) => /^-[A-Za-z]*c[A-Za-z]*$/.test(word));
  if (at >= 0) {
    const rest = args.slice(at + 1);
    const start = rest.findIndex((word) => !/^[-+]/.test(word) || word === "--");
    const words = rest[start] === "--" ? rest.slice(start + 1) : rest.slice(Math.max(0, start));
    const vars = new Map(state.vars).set("0", words.slice(1, 2));
    return runScript(words[0] ?? "", { ...state, vars, positional: words.slice(2) });
  }
  const file = args.find((word, index) => !/^[-+]/.test(word) && !/^[-+][oO]$/.test(args[index - 1] ?? ""));
  const readsInput = file === undefined || args.includes("-s");
  if (readsInput) return runScript(state.stdin ?? "", { ...state, stdin: undefined });
  return runFile(file, args.slice(args.indexOf(file) + 1), state);
}

function runFile(file: string, args: readonly string[], state: State): string {
  return runScript(contentOf(file, state).replace(/^#![^\n]*/, ""), { ...state, positional: args });
}

function runCode(language: string, args: readonly string[], state: State): string {
  const codes = /awk$/.test(language) ? args : valuesOf(args, "cerEBpnR", "eval", "execute", "print");
  const file = args.find((word) => !word.startsWith("-"));
  const written = file === undefined ? (state.stdin ?? "") : contentOf(file, state);
  for (const code of [...codes, written]) {
    for (const { shape, text, argv } of scriptsInCode(code)) {
      if (shape !== undefined) state.found.shapes.add(shape);
      if (text !== undefined) runScript(text, state);
      if (argv !== undefined) runWords(argv, nested(state));
    }
  }
  return UNKNOWN;
}

type Reader = (args: readonly string[], state: State, manner: Manner) => string;

const SSH = { short: "bcDEeFIiJLlmOopQRSWwB", operands: 1 };

const READERS: ReadonlyMap<string, Reader> = new Map<string, Reader>([
  ["xargs", (args, state, manner) => runXargs(args, state, manner)],
  ["find", (args, state, manner) => runFound(args, state, manner)],
  ["fd", (args, state, manner) => runFound(args, state, manner)],
  ["fdfind", (args, state, manner) => runFound(args, state, manner)],
  ["ssh", (args, state) => runRemote(afterOptions(args, SSH), state)],
  ["mosh", (args, state) => runRemote(afterOptions(args, SSH), state)],
  ["su", runAsUser],
  ["runuser", runAsUser],
  ["sg", runAsUser],
  ["script", runAsUser],
  ["at", (_, state) => runScript(state.stdin ?? "", state)],
  ["batch", (_, state) => runScript(state.stdin ?? "", state)],
  ["crontab", (_, state) => runSchedule(state)],
]);

function runRemote(words: readonly string[], state: State): string {
  return runScript(words.length > 0 ? words.join(" ") : (state.stdin ?? ""), { ...state, folder: undefined });
}

function runAsUser(args: readonly string[], state: State, manner: Manner): string {
  const texts = valuesOf(args, "c", "command", "session-command");
  for (const text of texts) runScript(text, state);
  const words = afterOptions(args, { short: "ugGsw", long: ["--user", "--group", "--shell"] });
  const behind = args.includes("--")
    ? args.slice(args.indexOf("--") + 1)
    : args.some((word) => /^-u/.test(word))
      ? words
      : [];
  if (behind.length > 0) return runWords(behind, nested(state), manner);
  return texts.length === 0 && state.stdin !== undefined ? runScript(state.stdin, state) : "";
}

function runSchedule(state: State): string {
  for (const line of (state.stdin ?? "").split("\n")) {
    const match = /^\s*(?:@\w+|(?:\S+\s+){5})\s*(.+)$/.exec(line);
    if (match?.[1] !== undefined) runScript(match[1], state);
  }
  return "";
}

const XARGS = {
  short: "InPLdasE",
  long: ["--max-args", "--max-procs", "--delimiter", "--arg-file", "--replace", "--max-lines"],
};

function runXargs(args: readonly string[], state: State, manner: Manner): string {
  const words = afterOptions(args, XARGS);
  const input = (state.stdin ?? "").split(/[\s\0]+/).filter((word) => word !== "");
  const mark = valuesOf(args, "I", "replace")[0] ?? (args.some((word) => word === "-i") ? "{}" : undefined);
  const inner = nested(state);
  if (mark === undefined || mark === "")
    return runWords(words.length === 0 ? ["echo", ...input] : [...words, ...input], inner, manner);
  const whole = (state.stdin ?? "").split(/[\n\0]+/).filter((line) => line !== "");
  const lines = whole.length === 0 ? [UNKNOWN] : whole;
  return lines
    .map((line) =>
      runWords(
        words.map((word) => word.replaceAll(mark, line)),
        inner,
        manner,
      ),
    )
    .join("");
}

/** The commands of find -exec. It prints everything below the folders that it searches, where nothing narrows that. */
function runFound(args: readonly string[], state: State, manner: Manner): string {
  for (const [at, word] of args.entries()) {
    if (!/^(?:-(?:exec|execdir|ok|okdir|x|X)|--exec(?:-batch)?)$/.test(word)) continue;
    const end = args.findIndex((each, index) => index > at && (each === ";" || each === "+"));
    runWords(args.slice(at + 1, end < 0 ? undefined : end), nested(state), manner);
  }
  if (isNarrowed(args)) return UNKNOWN;
  return searchedFolders(args)
    .map((folder) => `${folder.replace(/\/+$/, "")}/**\n`)
    .join("");
}
