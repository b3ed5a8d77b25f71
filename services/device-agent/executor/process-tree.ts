import { readdirSync, readFileSync } from "node:fs";
import { type ProcStat, parseProcStat } from "./proc-stat.ts";

/** The variable that marks every process of a run, so that one that left its group and its parent is still found. */
export const MARKER_NAME = "REEVE_RUN";

export interface ProcessTree {
  /** The living members, as they are now. Zombies are not living. */
  members(): ProcStat[];
}

/**
 * The tree under the process `root`, found in /proc. A process belongs to it when its parent, group or session does,
 * or when it carries the marker. Members are remembered, so that a child whose parent has died since the last look is
 * still known. What escapes: a process that has a new session, a dead parent and an environment without the marker at
 * the first look. Only a pid namespace or a control group holds that one.
 */
export function createProcessTree(root: number, marker: string): ProcessTree {
  const known = new Map<number, number>();
  // An empty one would be found in every program of every agent.
  if (marker === "") throw new RangeError("a process tree needs a marker");
  const needle = `${MARKER_NAME}=${marker}`;
  const first = readStat(root);
  const since = first?.startTicks ?? 0;
  if (first !== undefined) known.set(root, first.startTicks);

  // While its group lives the root's number cannot be given to another process; after that it can.
  const rootCounts = (): boolean => first !== undefined || groupExists(root);

  const belongs = (stat: ProcStat, ids: ReadonlySet<number>): boolean =>
    known.get(stat.pid) === stat.startTicks || ids.has(stat.ppid) || ids.has(stat.group) || ids.has(stat.session);

  return {
    members() {
      // Nothing that started before the root can be its child: this leaves out most of the machine.
      const recent = allProcesses().filter((stat) => stat.startTicks >= since && stat.pid !== process.pid);
      const ids = new Set<number>(rootCounts() ? [root] : []);
      for (const stat of recent) if (known.get(stat.pid) === stat.startTicks) ids.add(stat.pid);
      const found = new Set<ProcStat>();
      for (let before = -1; before !== found.size; ) {
        before = found.size;
        for (const stat of recent) {
          if (found.has(stat)) continue;
          if (!belongs(stat, ids) && !(before === 0 && carries(stat.pid, needle))) continue;
          found.add(stat);
          ids.add(stat.pid);
          known.set(stat.pid, stat.startTicks);
        }
      }
      return [...found].filter((stat) => stat.state !== "Z" && stat.state !== "X");
    },
  };
}

/** All processes of the machine, as they are now. One that ends meanwhile is left out. */
export function allProcesses(): ProcStat[] {
  const stats: ProcStat[] = [];
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid)) continue;
    const stat = readStat(pid);
    if (stat !== undefined) stats.push(stat);
  }
  return stats;
}

function readStat(pid: number): ProcStat | undefined {
  try {
    return parseProcStat(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return undefined;
  }
}

/** True while a process group has a member, living or not yet collected by its parent. */
export function groupExists(group: number): boolean {
  return send(-group, 0);
}

/** Sends a signal to a process, or to a group by its negated number. False where there is none. */
export function send(target: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(target, signal);
  } catch (error: unknown) {
    // EPERM: it exists, but it is not ours.
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

function carries(pid: number, needle: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/environ`, "latin1").includes(needle);
  } catch {
    return false;
  }
}
