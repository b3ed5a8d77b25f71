import type { Ledger } from "../ledger/ledger.ts";
import type { Endings } from "./endings.ts";

/**
 * Gives every call that has no end the end INTERRUPTED, with a signed receipt. For the start of the process only: then
 * these are the calls that an earlier process was running when it died. None is run again. Resolves with their number.
 */
export async function reconcileInterrupted(ledger: Pick<Ledger, "unended">, endings: Endings): Promise<number> {
  const unended = await ledger.unended();
  await Promise.all(unended.map((execution) => endings.endOf(execution)));
  return unended.length;
}
