import { setTimeout as sleep } from "node:timers/promises";
import { createProcessTree, groupExists, type ProcessTree, send } from "./process-tree.ts";

export interface KillOptions {
  /** The process that was started as the leader of its own group. */
  pid: number;
  /** The value of the marker variable that it was started with. */
  marker: string;
  /** How long the tree may take to end by itself after SIGTERM, in milliseconds. */
  graceMs: number;
}

export interface KillReport {
  /** How many processes it had at the start. */
  found: number;
  /** How many are left: 0 unless one belongs to another user or waits inside the kernel. */
  survivors: number;
}

/** How often a dying tree is looked at, in milliseconds: soon at first, then seldom, because a look reads all of /proc. */
const FIRST_POLL_MS = 5;
const LAST_POLL_MS = 100;

/** How many rounds of SIGKILL a tree gets that makes new processes as fast as they are killed. */
const KILL_ROUNDS = 200;

/**
 * Ends a whole tree: SIGTERM, the grace, then SIGKILL until nothing is left. On Linux that includes children that left
 * the group or the session (see createProcessTree); elsewhere it is the process group.
 */
export async function killTree(options: KillOptions): Promise<KillReport> {
  // A number below 2 would mean the agent's own group, or every process there is.
  if (!Number.isInteger(options.pid) || options.pid < 2) throw new RangeError(`no process to kill: ${options.pid}`);
  const tree = process.platform === "linux" ? createProcessTree(options.pid, options.marker) : groupOnly(options.pid);
  const found = signalAll(tree, options.pid, "SIGTERM");
  if (found === 0) return { found, survivors: 0 };
  for (let waited = 0, poll = FIRST_POLL_MS; waited < options.graceMs; poll = Math.min(poll * 2, LAST_POLL_MS)) {
    await sleep(Math.min(poll, options.graceMs - waited));
    waited += poll;
    if (isGone(tree)) return { found, survivors: 0 };
  }
  for (let round = 0; round < KILL_ROUNDS; round++) {
    if (signalAll(tree, options.pid, "SIGKILL") === 0 && isGone(tree)) return { found, survivors: 0 };
    await sleep(FIRST_POLL_MS);
  }
  return { found, survivors: tree.members().length };
}

/** Two empty looks: during one, a process may have made a child and ended before it was read. */
function isGone(tree: ProcessTree): boolean {
  return tree.members().length === 0 && tree.members().length === 0;
}

function signalAll(tree: ProcessTree, group: number, signal: NodeJS.Signals): number {
  const members = tree.members();
  if (members.length > 0) send(-group, signal);
  for (const member of members) if (member.group !== group) send(member.pid, signal);
  return members.length;
}

function groupOnly(pid: number): ProcessTree {
  const leader = { pid, name: "", state: "R", ppid: 0, group: pid, session: pid, cpuTicks: 0, startTicks: 0 };
  return { members: () => (groupExists(pid) ? [leader] : []) };
}
