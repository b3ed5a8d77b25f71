import { connectionFlags, connectionHelp, connectionValues, connectionWords } from "../connection-options.ts";
import { UsageError } from "../errors/usage-error.ts";
import { choosesMany, FAN_OUT_WORDS, fanOutHelp } from "../fan-out/words.ts";
import { parseDuration } from "../flags/duration.ts";
import type { HelpEntry } from "../flags/help.ts";
import { createWords, type FlagWord, flagWord, valueFor, type Words } from "../flags/words.ts";
import type { TargetFlags } from "../target.ts";

/** A call as it was typed: everything but the tool's own flags has been read. */
export interface CallWords {
  /** Undefined too where the call goes to many devices. */
  device: string | undefined;
  tool: string | undefined;
  /** Call with an operator's rights: what policy allows operators runs without being held. */
  asOperator: boolean;
  /** The words that are for the tool. */
  toolWords: readonly string[];
  /** The whole input: JSON text, "-" for standard input, or "@file". */
  input: string | undefined;
  output: "text" | "json";
  help: boolean;
  target: TargetFlags;
  /** How long to wait for a human, in milliseconds. */
  waitMs: number | undefined;
  noWait: boolean;
  callId: string | undefined;
  purpose: string | undefined;
  /** What the options of one command only were given as. */
  extra: ReadonlyMap<string, string>;
}

/** The options of `reeve call` that are no flags of a tool. */
export const callHelp: readonly HelpEntry[] = [
  { term: "--json", text: "print the call as JSON: state, decision, grant, receipt, place in the audit log" },
  {
    term: "--json '{…}' | - | @file",
    text: "the whole input as JSON, from the command line, standard input or a file, in place of flags; the output stays for people unless -o json is given too",
  },
  { term: "-o, --output text|json", text: "how to print the result" },
  {
    term: "--wait DURATION",
    text: "how long to wait for a human's decision, such as 30s or 10m. Default 60s, at most 1h",
  },
  { term: "--no-wait", text: "return as soon as policy has decided; the call goes on" },
  { term: "--call-id ID", text: "the call's id: the same id with the same input runs nothing twice" },
  { term: "--purpose TEXT", text: "why this is wanted: shown to the human who decides" },
  {
    term: "--queue DURATION",
    text: "keep the call for so long when its device is away, such as 1h: it is delivered when the device is back, after policy was asked again. At most 7d",
  },
  {
    term: "--as-operator",
    text: "call with an operator's rights, after the passphrase: policy then holds less",
  },
  ...fanOutHelp,
  ...connectionWords.map((word) => ({
    term: `--${word} ${connectionValues[word]}`,
    text: connectionHelp[word],
  })),
  { term: "-h, --help", text: "show help; after DEVICE TOOL: the tool's own" },
];

const VALUED = ["output", "wait", "call-id", "purpose", ...connectionWords];
const SWITCHES = ["help", "no-wait", "as-operator"];
const LETTERS: Readonly<Record<string, string>> = { "-o": "output", "-h": "help" };

/** The options of `reeve call` alone: pass them to `readCallWords`. */
export const callOptions: readonly string[] = ["queue", ...FAN_OUT_WORDS];

/** The names that no flag of a tool can have. */
export function takenNames(extra: readonly string[] = []): ReadonlySet<string> {
  return new Set([...VALUED, ...SWITCHES, "json", ...callOptions, ...extra]);
}

/** The longest a call that a human must decide on can be waited for. */
const MAX_WAIT_MS = 3_600_000;

/**
 * Reads a call's command line. Options may stand anywhere before "--"; the first two other words are the device and the
 * tool, or the first one the tool where many devices were chosen before it. Throws a UsageError.
 *
 * @param extraNames options with a value of the one command that reads this.
 */
export function readCallWords(argv: readonly string[], extraNames: readonly string[] = []): CallWords {
  const words = createWords(argv);
  const given = new Map<string, string>();
  const places: string[] = [];
  const toolWords: string[] = [];
  let json = false;
  const placesLeft = () => (choosesMany(given) ? 1 : 2) - places.length;
  for (let word = words.take(); word !== undefined; word = words.take()) {
    const typed = flagWord(word);
    const name = typed && (LETTERS[typed.name] ?? typed.name.replace(/^--/, ""));
    if (word === "--") toolWords.push(word, ...words.rest());
    else if (typed === undefined || name === undefined) (placesLeft() > 0 ? places : toolWords).push(word);
    else if (name === "json") json = takeJson(typed, words, given) || json;
    else if (VALUED.includes(name) || extraNames.includes(name)) set(given, name, valueFor(typed, words));
    else if (SWITCHES.includes(name)) set(given, name, noValue(typed));
    else if (placesLeft() <= 0) toolWords.push(word);
    else throw new UsageError(`${typed.name} stands before DEVICE TOOL, and is no option of every call`);
  }
  if (placesLeft() < 0) throw new UsageError("--on and --devices stand before TOOL, and in the place of DEVICE");
  if (choosesMany(given)) places.unshift("");
  return assemble(given, places, toolWords, json, extraNames);
}

/** "--json" with an input after it sets the input; alone it asks for JSON output. True for the latter. */
function takeJson(typed: FlagWord, words: Words, given: Map<string, string>): boolean {
  const next = words.peek();
  if (typed.attached !== undefined) set(given, "json", typed.attached);
  else if (next !== undefined && /^(?:[{@].*|-)$/s.test(next)) set(given, "json", words.take() ?? "");
  else return true;
  return false;
}

function set(given: Map<string, string>, name: string, value: string): void {
  if (given.has(name)) throw new UsageError(`--${name} is given twice`);
  given.set(name, value);
}

function noValue({ name, attached }: FlagWord): string {
  if (attached !== undefined) throw new UsageError(`${name} takes no value`);
  return "";
}

function assemble(
  given: ReadonlyMap<string, string>,
  [device, tool]: readonly string[],
  toolWords: readonly string[],
  json: boolean,
  extraNames: readonly string[],
): CallWords {
  const target: TargetFlags = {};
  for (const word of connectionWords) {
    const value = given.get(word);
    if (value !== undefined) target[connectionFlags[word]] = value;
  }
  const output = given.get("output") ?? (json ? "json" : "text");
  if (output !== "text" && output !== "json")
    throw new UsageError(`--output: ${JSON.stringify(output)} is neither text nor json`);
  const wait = given.get("wait");
  return {
    device: device === "" ? undefined : device,
    tool,
    asOperator: given.has("as-operator"),
    toolWords,
    target,
    output,
    input: given.get("json"),
    help: given.has("help"),
    noWait: given.has("no-wait"),
    waitMs: wait === undefined ? undefined : Math.min(parseDuration(wait, "--wait"), MAX_WAIT_MS),
    callId: given.get("call-id"),
    purpose: given.get("purpose"),
    extra: new Map(extraNames.flatMap((name) => (given.has(name) ? [[name, given.get(name) ?? ""]] : []))),
  };
}
