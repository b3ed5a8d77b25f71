import { readdirSync, readFileSync } from "node:fs";
import { setImmediate as nextTurn } from "node:timers/promises";
import { type ProcStat, parseProcStat } from "../../executor/proc-stat.ts";
import { throwIfAborted } from "../outcome.ts";
import type { ProcessSource, RunningProcess } from "./running-process.ts";

/** A clock tick as Linux counts it for programs: 1/100 second on every architecture in use (USER_HZ). */
const TICK_MS = 10;

/** How many processes are read before other work gets a turn. */
const BATCH = 64;

/** Processes from /proc (proc(5)). */
export const procfsSource: ProcessSource = {
  async list(context) {
    const boot = bootMs();
    const found: RunningProcess[] = [];
    for (const [at, pid] of pids().entries()) {
      if (at % BATCH === BATCH - 1) await nextTurn();
      throwIfAborted(context);
      const process = readProcess(pid, boot);
      if (process !== undefined) found.push(process);
    }
    return found;
  },
  get: async (_, pid) => readProcess(pid, bootMs()),
};

function pids(): number[] {
  const names = readdirSync("/proc").map(Number);
  return names.filter((pid) => Number.isInteger(pid)).sort((a, b) => a - b);
}

/** Undefined for a process that ends while it is read. */
function readProcess(pid: number, boot: number): RunningProcess | undefined {
  try {
    const stat = parseProcStat(readFileSync(`/proc/${pid}/stat`, "latin1"));
    if (stat === undefined) return undefined;
    const status = readFileSync(`/proc/${pid}/status`, "latin1");
    return fromFiles(stat, status, readFileSync(`/proc/${pid}/cmdline`, "utf8"), boot);
  } catch {
    return undefined;
  }
}

function fromFiles(stat: ProcStat, status: string, cmdline: string, boot: number): RunningProcess {
  return {
    pid: stat.pid,
    ppid: stat.ppid,
    // Real, effective, saved and file system id: the effective one says what it may do.
    uid: Number(/^Uid:\s+\d+\s+(\d+)/m.exec(status)?.[1] ?? 0),
    name: stat.name,
    command: cmdline.replace(/\0+$/, "").replaceAll("\0", " "),
    state: stat.state,
    memoryBytes: Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1024,
    cpuMs: stat.cpuTicks * TICK_MS,
    startMs: boot + stat.startTicks * TICK_MS,
  };
}

/** When the machine started, in milliseconds since 1970. */
function bootMs(): number {
  return Number(/^btime (\d+)/m.exec(readFileSync("/proc/stat", "latin1"))?.[1] ?? 0) * 1000;
}
