import { closeSync, constants, type Stats } from "node:fs";
import type { HeldEntry } from "./held.ts";
import type { Need } from "./lexical.ts";
import { requireFile, requireOneName } from "./refusals.ts";

/** A regular file that is open. */
export interface HeldFile extends Disposable {
  readonly fd: number;
  readonly stats: Stats;
}

/** Opens a held regular file for reading. Faults: PATH_OUTSIDE_ROOTS for several names or a link, OS_REFUSED for no file. */
export function openHeldFile(entry: HeldEntry, path: string, need: Need): HeldFile {
  requireFile(entry, path, need);
  requireOneName(entry, path, need);
  const fd = entry.open(constants.O_RDONLY);
  return { fd, stats: entry.stats, [Symbol.dispose]: () => closeSync(fd) };
}
