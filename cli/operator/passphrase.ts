import type { CommandContext } from "../command-context.ts";
import { UsageError } from "../errors/usage-error.ts";
import { askHidden, canAsk } from "../print/prompt.ts";
import { MIN_PASSPHRASE } from "./passphrase-seal.ts";
import { openSealedOperator, readSealedOperator, type SealedOperator } from "./sealed-file.ts";

/** What proves that a person is present who may act as an operator. */
export interface Presence {
  /** False where it is known that nothing can prove it here. */
  isPossible(): Promise<boolean>;
  /** The operator's token. Throws a UsageError where presence was not proven. */
  token(): Promise<string>;
}

/** How often a passphrase may be mistyped. */
const TRIES = 3;

const HOW = [
  "set REEVE_TOKEN to the operator's token that the first start of `reeve up` printed",
  "or keep that token here under a passphrase: `reeve operator seal`",
  "lost it? `reeve operator replace` makes a new one",
];

/** Presence by the passphrase of the sealed operator's token in a data folder. */
export function passphrasePresence(context: CommandContext, folder: string): Presence {
  return {
    isPossible: async () => canAsk(context) && (await readSealedOperator(folder)) !== undefined,
    async token() {
      const sealed = await readSealedOperator(folder);
      if (sealed === undefined) throw new UsageError("this needs an operator's token, and none is known", HOW);
      return askToOpen(sealed, context);
    },
  };
}

/** Asks for the passphrase of a sealed token and opens it. Throws a UsageError where that does not come about. */
export async function askToOpen(sealed: SealedOperator, context: CommandContext): Promise<string> {
  if (!canAsk(context)) {
    throw new UsageError("this needs an operator, and there is no terminal to ask for the passphrase on", [
      "run it at a terminal, or set REEVE_TOKEN to an operator's token",
    ]);
  }
  for (let left = TRIES; left > 0; left--) {
    const passphrase = await askHidden(context, "Operator's passphrase: ");
    if (passphrase === undefined || passphrase === "")
      throw new UsageError("no passphrase was given: nothing was done");
    const token = await openSealedOperator(sealed, passphrase, context.passphraseCost);
    if (token !== undefined) return token;
    context.stderr.write("That is not the passphrase.\n");
  }
  throw new UsageError(`${TRIES} wrong passphrases: nothing was done`, [
    "lost it? `reeve operator replace` makes a new operator's token and a new passphrase",
  ]);
}

/**
 * Asks for a new passphrase, twice. Undefined for an empty one: the person wants none.
 * Asks again while it is too short or the two differ; undefined too after three times.
 */
export async function askNewPassphrase(context: CommandContext, question: string): Promise<string | undefined> {
  for (let left = TRIES; left > 0; left--) {
    const passphrase = await askHidden(context, question);
    if (passphrase === undefined || passphrase === "") return undefined;
    if (passphrase.length < MIN_PASSPHRASE) {
      context.stderr.write(`It needs at least ${MIN_PASSPHRASE} characters; four words are good.\n`);
    } else if ((await askHidden(context, "Once more: ")) === passphrase) return passphrase;
    else context.stderr.write("The two are not the same.\n");
  }
  return undefined;
}
