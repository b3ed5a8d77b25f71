import { dirname } from "node:path";
import { createTokenFile, type TokenFile } from "../../lib/auth/token-file.ts";
import type { CommandContext } from "../command-context.ts";
import { UsageError } from "../errors/usage-error.ts";
import { tokensPath } from "../profile.ts";
import { operatorsOnly } from "../stack/first-tokens.ts";
import { askToOpen } from "./passphrase.ts";
import { readSealedOperator } from "./sealed-file.ts";

/**
 * The token file, for a change. Where an operator's token is sealed beside it, an operator has to be shown: by REEVE_TOKEN,
 * else by the passphrase. Throws a UsageError otherwise. This guards against a slip, and against a program that is only let
 * start `reeve`: a process that can write the file needs no command.
 */
export async function tokenFileForChange(context: CommandContext): Promise<TokenFile> {
  const path = tokensPath(context.env);
  const tokens = createTokenFile(path);
  const sealed = await readSealedOperator(dirname(path));
  if (sealed === undefined) return tokens;
  const token = context.env.REEVE_TOKEN || (await askToOpen(sealed, context));
  if (operatorsOnly(tokens, token) !== undefined) return tokens;
  throw new UsageError("tokens are changed by operators, and this is not an operator's token", [
    "set REEVE_TOKEN to an operator's token, or leave it out and give the passphrase",
    "`reeve operator replace` makes a new operator's token where the old one is lost or revoked",
  ]);
}
