import { canAsk } from "../print/prompt.ts";
import type { World } from "../world.ts";
import { askNewPassphrase } from "./passphrase.ts";
import { sealedOperatorPath, writeSealedOperator } from "./sealed-file.ts";

/**
 * Offers, at a terminal, to keep an operator's token under a passphrase, so that the person can approve at this machine.
 * Does nothing where nobody can be asked.
 */
export async function offerSeal(world: World, folder: string, token: string): Promise<void> {
  if (!canAsk(world)) return;
  world.stderr.write(
    "\nTo approve held calls at this machine, choose a passphrase; the operator's token is kept under it.\n" +
      "Leave it empty to keep nothing: then set REEVE_TOKEN to that token whenever you approve.\n",
  );
  const passphrase = await askNewPassphrase(world, "New passphrase: ");
  if (passphrase === undefined) {
    world.stderr.write("Nothing was kept. `reeve operator seal` does it later.\n");
    return;
  }
  await writeSealedOperator(folder, token, passphrase);
  world.stderr.write(`Kept in ${sealedOperatorPath(folder)}.\n`);
}
