import { readFileSync } from "node:fs";
import { allProcesses } from "../executor/process-tree.ts";

/** The living processes of a group. Zombies do not count. */
export function livingIn(group: number): number[] {
  return allProcesses().flatMap(({ pid, group: own, state }) => (own === group && state !== "Z" ? [pid] : []));
}

/** The processes that have this text in their command line, whose arguments end with a NUL each. */
export function pidsWith(text: string): number[] {
  return allProcesses().flatMap(({ pid }) => (commandLineOf(pid).includes(text) ? [pid] : []));
}

function commandLineOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "latin1");
  } catch {
    return "";
  }
}
