import type { Command } from "commander";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { createTokenFile, type TokenFile } from "../../lib/auth/token-file.ts";
import type { CommandContext } from "../command-context.ts";
import { UsageError } from "../errors/usage-error.ts";
import { askNewPassphrase, askToOpen } from "../operator/passphrase.ts";
import {
  readSealedOperator,
  type SealedOperator,
  sealedOperatorPath,
  writeSealedOperator,
} from "../operator/sealed-file.ts";
import { askHidden, askLine, canAsk } from "../print/prompt.ts";
import { dataDir, tokensPath } from "../profile.ts";
import { operatorsOnly } from "../stack/first-tokens.ts";

/** Registers `reeve operator` with seal, passphrase and replace. */
export function registerOperator(program: Command, context: CommandContext): void {
  const operator = program
    .command("operator")
    .description("Keep the operator's token of this machine under a passphrase, which is asked for when you approve.");
  operator
    .command("seal")
    .description("Keep an operator's token (REEVE_TOKEN, or asked for) under a new passphrase.")
    .action(() => seal(context));
  operator
    .command("passphrase")
    .description("Change the passphrase. The token stays.")
    .action(() => changePassphrase(context));
  operator
    .command("replace")
    .description(
      "Make a new operator's token under a new passphrase, where the old one is lost; the one that was sealed is revoked.\n" +
        "Write access to this machine's data folder is all that this takes: it is the owner's way back in.",
    )
    .action(() => replace(context));
}

async function seal(context: CommandContext): Promise<void> {
  requireTerminal(context);
  const token = context.env.REEVE_TOKEN || (await askHidden(context, "The operator's token: "))?.trim();
  if (operatorsOnly(tokenFile(context), token) === undefined) {
    throw new UsageError("that is not an operator's token of this machine's control plane", [
      "`reeve token list` shows which there are; `reeve operator replace` makes a new one",
    ]);
  }
  await keep(context, token ?? "");
}

async function changePassphrase(context: CommandContext): Promise<void> {
  requireTerminal(context);
  const sealed = await readSealedOperator(dataDir(context.env));
  if (sealed === undefined) throw new UsageError("there is no passphrase yet", ["`reeve operator seal` sets one"]);
  await keep(context, await askToOpen(sealed, context));
}

async function replace(context: CommandContext): Promise<void> {
  requireTerminal(context);
  const folder = dataDir(context.env);
  const tokens = tokenFile(context);
  const old = await readSealedOperator(folder).catch(() => undefined);
  const answer = await askLine(context, `${questionAbout(old)} [y/N] `);
  if (!/^y(es)?$/i.test(answer?.trim() ?? "")) throw new UsageError("nothing was done");
  const passphrase = await newPassphrase(context);
  const { token, entry } = tokens.issueToken({ name: "owner", roles: [Role.OPERATOR] });
  await writeSealedOperator(folder, token, passphrase, context.passphraseCost);
  const revoked = old !== undefined && tokens.revokeToken(old.tokenId);
  context.stderr.write(
    `reeve: ${entry.id} is the operator's token now, kept in ${sealedOperatorPath(folder)}` +
      `${revoked ? `; ${old.tokenId} is revoked` : ""}\nreeve: \`reeve token list\` shows whether there are others to revoke\n`,
  );
}

function questionAbout(old: SealedOperator | undefined): string {
  const revoke = old === undefined ? "" : `, and revoke ${old.tokenId}`;
  return `Make a new operator's token under a new passphrase${revoke}?`;
}

async function keep(context: CommandContext, token: string): Promise<void> {
  const folder = dataDir(context.env);
  await writeSealedOperator(folder, token, await newPassphrase(context), context.passphraseCost);
  context.stderr.write(`reeve: kept in ${sealedOperatorPath(folder)}\n`);
}

async function newPassphrase(context: CommandContext): Promise<string> {
  const passphrase = await askNewPassphrase(context, "New passphrase: ");
  if (passphrase === undefined) throw new UsageError("no passphrase was set: nothing was done");
  return passphrase;
}

function tokenFile({ env }: CommandContext): TokenFile {
  return createTokenFile(tokensPath(env));
}

function requireTerminal(context: CommandContext): void {
  if (!canAsk(context)) throw new UsageError("a passphrase is typed at a terminal, and there is none");
}
