import { procfsSource } from "./procfs.ts";
import { psSource } from "./ps.ts";
import type { ProcessSource, RunningProcess } from "./running-process.ts";

/** /proc on Linux, ps elsewhere. */
export const processSource: ProcessSource = process.platform === "linux" ? procfsSource : psSource;

/** True for a process that has ended and waits for its parent to take note. */
export function isZombie(process: RunningProcess): boolean {
  return process.state.startsWith("Z") || process.state.startsWith("X");
}
