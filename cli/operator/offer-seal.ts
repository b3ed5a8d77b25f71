import type { CommandContext } from "../command-context.ts";
import { canAsk } from "../print/prompt.ts";
import { askNewPassphrase } from "./passphrase.ts";
import { sealedOperatorPath, writeSealedOperator } from "./sealed-file.ts";

/**
 * Offers, at a terminal, to keep an operator's token under a passphrase, so that the person can approve at this machine.
 * Does nothing without a terminal.
 */
export async function offerSeal(context: CommandContext, folder: string, token: string): Promise<void> {
  if (!canAsk(context)) return;
  context.stderr.write(
    "\nTo approve held calls at this machine, choose a passphrase; the operator's token is kept under it.\n" +
      "Leave it empty to keep nothing: then set REEVE_TOKEN to that token whenever you approve.\n",
  );
  const passphrase = await askNewPassphrase(context, "New passphrase: ");
  if (passphrase === undefined) {
    context.stderr.write("Nothing was kept. `reeve operator seal` does it later.\n");
    return;
  }
  await writeSealedOperator(folder, token, passphrase, context.passphraseCost);
  context.stderr.write(`Kept in ${sealedOperatorPath(folder)}.\n`);
}
