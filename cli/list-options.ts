import { type Command, InvalidArgumentError, Option } from "commander";

/** What the list commands share. */
export interface ListFlags {
  limit: number;
  json?: true;
}

/** The longest list that is asked for where nobody said. */
const DEFAULT_LIMIT = 100;

/** Adds --limit and --json to a command that lists. Pages are followed up to the limit. */
export function withList(command: Command, limit = DEFAULT_LIMIT): Command {
  return withJson(
    command.addOption(new Option("--limit <n>", "how many at most").argParser(parseCount).default(limit)),
  );
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
