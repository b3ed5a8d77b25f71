import { isAtOrBelow, realPathOf } from "../../../lib/paths/real-path.ts";

/**
 * The folders that may be read where the owner names none: the folder that the agent is started in, unless the home
 * folder lies in it or is it. Then none: a home folder holds what no list of secrets names, and being there when the
 * agent is started is no choice. Symbolic links count as what they lead to.
 *
 * @param folder where the agent is started; absolute.
 * @param home the home folder; absolute.
 */
export function defaultReadRoots(folder: string, home: string): string[] {
  const start = realPathOf(folder) ?? folder;
  const own = realPathOf(home) ?? home;
  const holdsHome = isAtOrBelow(own, start);
  return holdsHome ? [] : [start];
}
