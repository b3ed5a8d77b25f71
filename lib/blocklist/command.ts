import { type ShellCommand, scanShell } from "./shell-words.ts";
import { canonicalPath } from "./targets.ts";
import { programOf, readsCommands, type Unwrapped, unwrap } from "./wrappers.ts";

/** A command as the rules see it: unwrapped, without quotes. */
export interface Command {
  /** The program's name without its folder. Empty where there are only redirections. */
  program: string;
  args: readonly string[];
  /** The files that its redirections write. */
  writes: readonly string[];
  /** The folder it runs in, where that is known. */
  folder?: string;
  /** What stands behind it. */
  next: ShellCommand["next"];
  /** The function whose body it is in. */
  inFunction?: string;
}

/** How many commands are looked at, and how often one may be wrapped. What is more complex is refused whole. */
const MOST_COMMANDS = 512;
const MOST_WRAPPERS = 8;

/** Every command that a request would run, or "too complex". */
export type Commands = readonly Command[] | "too complex";

/** The commands of a shell text, those inside wrappers, substitutions and nested shells too. */
export function commandsOfText(text: string, folder?: string): Commands {
  const found: Command[] = [];
  return gather(found, [{ kind: "shell", text }], folder, 0) ? found : "too complex";
}

/** The commands of an argument list, which no shell reads. */
export function commandsOfArgv(argv: readonly string[], stdin: string, folder?: string): Commands {
  const found: Command[] = [];
  return addCommand(found, { words: [...argv], writes: [], stdin, next: "" }, folder, 0) ? found : "too complex";
}

function gather(found: Command[], inner: readonly Unwrapped[], folder: string | undefined, depth: number): boolean {
  return inner.every((each) => {
    if (each.kind === "argv") return addCommand(found, { words: each.argv, writes: [], next: "" }, folder, depth);
    const scan = scanShell(each.text);
    return !scan.tooDeep && addAll(found, scan.commands, folder, depth);
  });
}

function addAll(
  found: Command[],
  commands: readonly ShellCommand[],
  start: string | undefined,
  depth: number,
): boolean {
  let folder = start;
  let before: ShellCommand | undefined;
  for (const command of commands) {
    const piped = before?.next === "|" && readsCommands(command.words) ? literalOutput(before.words) : undefined;
    const stdin = command.stdin ?? piped;
    if (!addCommand(found, stdin === undefined ? command : { ...command, stdin }, folder, depth)) return false;
    if (programOf(command.words) === "cd") folder = canonicalPath(command.words.at(-1) ?? "", folder);
    before = command;
  }
  return true;
}

function addCommand(found: Command[], command: ShellCommand, folder: string | undefined, depth: number): boolean {
  if (found.length >= MOST_COMMANDS || depth > MOST_WRAPPERS) return false;
  const { words, writes, next, inFunction, stdin } = command;
  const where = folder === undefined ? {} : { folder };
  found.push({
    program: programOf(words),
    args: words.slice(1),
    writes,
    next,
    ...where,
    ...(inFunction ? { inFunction } : {}),
  });
  return gather(found, unwrap(words, stdin), folder, depth + 1);
}

/** What echo or printf would print, where that is plain from their words. */
function literalOutput(words: readonly string[]): string | undefined {
  const program = programOf(words);
  if (program !== "echo" && program !== "printf") return undefined;
  return words
    .slice(1)
    .filter((word) => !/^-[neE]+$/.test(word))
    .join(" ")
    .replaceAll("\\n", "\n");
}

/** True where one of the short options (letters) or long options is among the words. Bundles and "=value" count. */
export function hasOption(args: readonly string[], letters: string, ...long: string[]): boolean {
  const end = args.indexOf("--");
  return (end < 0 ? args : args.slice(0, end)).some((word) => {
    if (/^-[A-Za-z]/.test(word)) return letters !== "" && new RegExp(`[${letters}]`).test(word.slice(1));
    const name = word.replace(/=.*$/s, "");
    // GNU programs take any beginning of a long option that is not ambiguous.
    return name.startsWith("--") && name.length > 3 && long.some((each) => each.startsWith(name));
  });
}

/** The words that are no options. After "--" all are. */
export function operands(args: readonly string[]): string[] {
  const end = args.indexOf("--");
  const before = (end < 0 ? args : args.slice(0, end)).filter((word) => !word.startsWith("-") || word === "-");
  return end < 0 ? before : [...before, ...args.slice(end + 1)];
}
