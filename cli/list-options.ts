import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { type Command, InvalidArgumentError, Option } from "commander";

/** What the list commands share. */
export interface ListFlags {
  limit: number;
  json?: true;
}

/** The longest list by default. */
const DEFAULT_LIMIT = 100;

/** Adds --limit and --json to a command that lists. Pages are followed up to the limit. */
export function withList(command: Command, limit = DEFAULT_LIMIT): Command {
  return withJson(
    command.addOption(new Option("--limit <n>", "how many at most").argParser(parseCount).default(limit)),
  );
}

/** What the commands share that list what happened. */
export interface HistoryFlags extends ListFlags {
  pageToken?: string;
  /** Milliseconds since 1970. */
  since?: number;
  follow?: true;
}

/** Adds --limit, --page-token, --since and --json to a command that lists what happened, newest first. */
export function withHistory(command: Command): Command {
  return withList(command)
    .option("--page-token <token>", "go on where an earlier list ended: what it named, or its nextPageToken")
    .addOption(
      new Option("--since <time>", "only from then on: 30m, 12h, 7d ago, or 2026-03-01T12:00Z").argParser(parseSince),
    );
}

/** Adds --follow to such a command. */
export function withFollow(command: Command): Command {
  return command.addOption(
    new Option("-f, --follow", "oldest first, then each new one as it comes; with --json a line each").conflicts(
      "pageToken",
    ),
  );
}

const UNITS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A time in milliseconds since 1970, from a length of time before now or a date. Throws commander's InvalidArgumentError. */
export function parseSince(text: string): number {
  const [, count = "", unit = ""] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const ms = count === "" ? Date.parse(text) : Date.now() - Number(count) * (UNITS[unit] ?? 0);
  if (Number.isFinite(ms)) return ms;
  throw new InvalidArgumentError('It must be a length of time such as "12h", or a date such as "2026-03-01T12:00Z".');
}

/** Whether something happened at or after a time. */
export function isSince(time: Timestamp | undefined, since: number | undefined): boolean {
  return since === undefined || time === undefined || timestampMs(time) >= since;
}

/** Adds --json: one JSON document in place of text. */
export function withJson(command: Command): Command {
  return command.option("--json", "print one JSON document");
}

/** A whole number from 1. Throws commander's InvalidArgumentError. */
export function parseCount(text: string): number {
  const number = Number(text);
  if (/^\d{1,7}$/.test(text) && number > 0) return number;
  throw new InvalidArgumentError("It must be a whole number from 1.");
}

/** A whole number from 0. Throws commander's InvalidArgumentError. */
export function parseIndex(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("It must be a whole number from 0.");
}

/** The page size for so many items still wanted, within what the service takes. */
export function pageSize(room: number, most: number): number {
  return Math.min(room, most);
}
