import { readdirSync, readFileSync } from "node:fs";
import { type ProcStat, parseProcStat } from "../executor/proc-stat.ts";

/** The living processes of a group. Zombies do not count. */
export function livingIn(group: number): number[] {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  const stats = pids.flatMap((pid) => statOf(pid) ?? []);
  return stats.filter((found) => found.group === group && found.state !== "Z").map(({ pid }) => pid);
}

function statOf(pid: string): ProcStat | undefined {
  try {
    return parseProcStat(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return undefined;
  }
}
