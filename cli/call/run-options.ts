import { Command, InvalidArgumentError, Option } from "commander";
import { withConnection } from "../connection-options.ts";
import { UsageError } from "../errors/usage-error.ts";
import { parseDuration } from "../flags/duration.ts";
import { withJson } from "../list-options.ts";
import type { TargetFlags } from "../target.ts";

/** What the commands share whose line ends in a tool and the tool's own flags. */
export interface ToolFlags extends TargetFlags {
  /** The whole input: JSON text, "-" for standard input, or "@file". */
  input?: string;
  purpose?: string;
  json?: true;
  help?: true;
}

/** The options of `reeve call run`. */
export interface RunFlags extends ToolFlags {
  /** How long to wait for a person, in milliseconds; false: only for policy's decision. */
  wait?: number | false;
  callId?: string;
  /** How long the call may wait for its device, in seconds. */
  queue?: number;
  asOperator?: true;
  /** A label selector. */
  on?: string;
  /** Names or ids. */
  device?: string[];
  wave?: number;
  canary?: number;
  maxDevices?: number;
  stopAfter?: number;
  fanoutId?: string;
}

/** The options that mean something for a fan-out only, as they are typed. */
export const FAN_OUT_OPTIONS = ["wave", "canary", "max-devices", "stop-after", "fanout-id"] as const;

/** How `reeve call` is typed. */
export const callUsage = "DEVICE TOOL [--flag VALUE ...] [options] [-- ARGV ...]";

/** How it is typed for many devices. */
export const fanOutUsage = "--on SELECTOR|--device NAME,… TOOL [--flag VALUE ...] [options] [-- ARGV ...]";

/** The longest a caller waits for a person's decision. */
const MAX_WAIT_MS = 3_600_000;

/** The longest a call is queued for its device: 7 days. */
const MAX_QUEUE_MS = 604_800_000;

/**
 * Makes a command one whose words end in a tool's own: an option that it does not know is the tool's, and "--" stays among
 * its words, with all that stands after it.
 */
export function withToolWords(command: Command): Command {
  return keepRest(command.helpOption(false).allowUnknownOption().argument("[words...]"))
    .option("-h, --help", "show help; after DEVICE TOOL: the tool's own")
    .option("--input <json>", "the whole input in place of flags: JSON text, - for standard input, or @FILE")
    .option("--purpose <text>", "why this is requested, for the person who decides");
}

/** Keeps "--" and what follows it among a command's words; commander drops the dashes after operands. */
export function keepRest(command: Command): Command {
  const parse = command.parseOptions.bind(command);
  command.parseOptions = (argv) => {
    const end = argv.indexOf("--");
    if (end < 0) return parse(argv);
    const { operands, unknown } = parse(argv.slice(0, end));
    return { operands, unknown: [...unknown, ...argv.slice(end)] };
  };
  return command;
}

/** Adds --wait and --no-wait. */
export function withWait(command: Command): Command {
  const wait = "how long to wait for a person's decision, such as 30s or 10m. Default 60s, at a terminal 1h, the most";
  return command
    .addOption(new Option("--wait <duration>", wait).argParser(parseWait))
    .option("--no-wait", "return as soon as policy has decided; the call goes on");
}

/** --as-operator of the commands that call a tool. */
export function asOperatorOption(): Option {
  return new Option("--as-operator", "call with an operator's rights, after the passphrase: policy then holds less");
}

/** Adds the options of `reeve call run`. */
export function withRunOptions(command: Command): Command {
  const number = (flags: string, text: string) => new Option(flags, text).argParser(parseNumber);
  const queue =
    "queue the call for so long if its device is offline, such as 1h, at most 7d; policy decides again on delivery";
  withWait(withToolWords(command))
    .option("--call-id <id>", "the call's id: the same id with the same input runs nothing twice")
    .addOption(new Option("--queue <duration>", queue).argParser(parseQueue))
    .addOption(asOperatorOption())
    .optionsGroup("Many devices:")
    .addOption(new Option("--on <selector>", "those with these labels, such as role=web,zone!=eu").conflicts("device"))
    .addOption(new Option("--device <name,...>", "those with these names or ids").argParser(parseNames))
    .addOption(number("--wave <n>", "so many devices at a time. Default all"))
    .addOption(number("--canary <n>", "so many devices first; the others wait for their success"))
    .addOption(number("--max-devices <n>", "start nothing if there are more devices than this. Default 100"))
    .addOption(number("--stop-after <n>", "start no further wave once so many calls have not succeeded. Default 1"))
    .option("--fanout-id <id>", "its id: the same id with the same input goes on where it stood")
    .optionsGroup("Output and connection:");
  return withConnection(withJson(command));
}

/** The options of `reeve call run`, for the help of a tool. */
export const runOptions = withRunOptions(new Command()).options;

/** The names that no flag of a tool can have: those of the options beside it. */
export const takenNames: ReadonlySet<string> = new Set([
  ...runOptions.map(({ long }) => long?.slice(2) ?? ""),
  "as-role",
  "as-id",
]);

/** True where a call goes to many devices. */
export function isFanOut({ on, device }: RunFlags): boolean {
  return on !== undefined || device !== undefined;
}

/** The parts of a call's words. */
export interface ToolWords {
  /** Undefined where the call goes to many devices too. */
  device: string | undefined;
  tool: string | undefined;
  /** The tool's own. */
  rest: readonly string[];
}

/** Splits a call's words into device, tool and the tool's own. Throws a UsageError for an option before them that is not known. */
export function splitWords(words: readonly string[], many: boolean): ToolWords {
  const places = many ? 1 : 2;
  const named = words.slice(0, places);
  const option = named.find((word) => word.startsWith("-"));
  if (option !== undefined && option !== "--") {
    throw new UsageError(`${option} stands before ${many ? "" : "DEVICE "}TOOL, and is no option of every call`);
  }
  const [device, tool] = many ? [undefined, ...named] : named;
  const rest = words.slice(places);
  if (many && rest[0]?.startsWith("-") === false) {
    throw new UsageError(`with --on or --device the first word is TOOL, so ${JSON.stringify(rest[0])} has no place`);
  }
  return { device: device === "--" ? undefined : device, tool: tool === "--" ? undefined : tool, rest };
}

function parseWait(text: string): number {
  return Math.min(parseDuration(text, "--wait"), MAX_WAIT_MS);
}

function parseQueue(text: string): number {
  const ms = parseDuration(text, "--queue");
  if (ms >= 1000 && ms <= MAX_QUEUE_MS) return ms;
  throw new UsageError("--queue: a call can be queued for 1s to 7d");
}

function parseNames(text: string): string[] {
  const names = text.split(",").map((name) => name.trim());
  if (names.includes("")) throw new InvalidArgumentError("A name is empty.");
  return names;
}

function parseNumber(text: string): number {
  const number = Number(text);
  if (/^\d{1,4}$/.test(text) && number > 0 && number <= 1000) return number;
  throw new InvalidArgumentError("It must be a whole number from 1 to 1000.");
}
