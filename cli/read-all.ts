import type { CommandContext } from "./command-context.ts";
import { UsageError } from "./errors/usage-error.ts";

/** All of standard input as text. Throws a UsageError where it has more than `maxBytes`, with what it should be. */
export async function readAll(
  { stdin }: Pick<CommandContext, "stdin">,
  maxBytes: number,
  what: string,
): Promise<string> {
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of stdin) {
    const bytes = Buffer.from(piece);
    length += bytes.length;
    if (length > maxBytes) throw new UsageError(`standard input holds more than ${what}`);
    pieces.push(bytes);
  }
  return Buffer.concat(pieces).toString("utf8");
}
