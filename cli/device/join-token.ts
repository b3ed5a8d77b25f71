import { readPrivateFile } from "../../lib/files/private-file.ts";
import type { CommandContext } from "../command-context.ts";
import { UsageError } from "../errors/usage-error.ts";
import { askHidden, canAsk } from "../print/prompt.ts";
import { readAll } from "../read-all.ts";

/** How a token of this version begins, which no file is called. */
const TOKEN = /^rvj\d+\./;

/** More than any token has, in bytes. */
const MAX_BYTES = 64 * 1024;

const WAYS = [
  "`reeve device join` asks for it, or reads it from standard input",
  "`reeve device join FILE` reads it from a file, and so does `reeve serve device` with REEVE_JOIN_TOKEN_FILE",
];

/**
 * The join token that `reeve device join` reads: "-" asks for it without showing it, or reads standard input where that is no
 * terminal; anything else is a file that only its owner can read. Throws a UsageError for a token itself: every user of the
 * machine can read the command lines of what runs.
 */
export async function readJoinToken(source: string, context: CommandContext): Promise<string> {
  if (TOKEN.test(source)) {
    throw new UsageError("a token on the command line can be read by every user of this machine", WAYS);
  }
  const text = source === "-" ? await typed(context) : fromFile(source);
  const token = text?.trim() ?? "";
  if (token === "") throw new UsageError("no join token was given", WAYS);
  return token;
}

function typed(context: CommandContext): Promise<string | undefined> {
  return canAsk(context)
    ? askHidden(context, "Join token (it is not shown): ")
    : readAll(context, MAX_BYTES, "a token");
}

function fromFile(path: string): string {
  try {
    return readPrivateFile(path);
  } catch (cause: unknown) {
    throw new UsageError(`${cause instanceof Error ? cause.message : String(cause)}`, WAYS, { cause });
  }
}
