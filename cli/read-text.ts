import type { CommandContext } from "./command-context.ts";
import { UsageError } from "./errors/usage-error.ts";

/** The longest text that is read from standard input, in bytes. */
const MAX_TEXT = 1024 * 1024;

/** A text from standard input, without space around it. Throws a UsageError at a terminal, and for one that is too long. */
export async function readText({ stdin }: Pick<CommandContext, "stdin">, what: string): Promise<string> {
  if (stdin.isTTY === true) throw new UsageError(`there is no ${what}`);
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stdin) {
    chunks.push(Buffer.from(chunk));
    length += chunk.length;
    if (length > MAX_TEXT) throw new UsageError(`the ${what} is longer than ${MAX_TEXT} bytes`);
  }
  return Buffer.concat(chunks).toString("utf8").trim();
}
