import { setTimeout as sleep } from "node:timers/promises";
import { ErrorReason } from "../../../../gen/ts/reeve/common/v1/error_pb.ts";
import { Signal } from "../../../../gen/ts/reeve/tools/v1/process_pb.ts";
import { fault } from "../../../../lib/fault/fault.ts";
import { SPAWNER_TITLE } from "../../executor/spawner-messages.ts";
import { SPAWNER_MAIN } from "../../executor/spawner-process.ts";
import { throwIfAborted } from "../outcome.ts";
import type { ToolContext } from "../tool.ts";
import { isZombie } from "./process-source.ts";
import type { ProcessSource, RunningProcess } from "./running-process.ts";

/** Which process to signal. */
export interface KillRequest {
  pid: number;
  signal: Signal;
  /** How long to wait for its end, in milliseconds. 0: not at all. */
  waitMs: number;
}

/** How often a process is looked for while it is waited for, in milliseconds. Only its parent is notified of its end. */
const POLL_MS = 20;

/** How far two answers about one process's start may lie apart, in milliseconds: ps counts in seconds and rounds. */
const START_JITTER_MS = 2000;

const SIGNALS: Readonly<Record<number, NodeJS.Signals>> = {
  [Signal.KILL]: "SIGKILL",
  [Signal.INT]: "SIGINT",
  [Signal.HUP]: "SIGHUP",
};

/**
 * Signals one process and waits for its end where asked to. Faults: POLICY_BLOCKED{rules} for the machine's first
 * process, the agent, its parents and the process that starts its programs; TARGET_NOT_FOUND{field}; OS_REFUSED{field,errno}; CANCELED, TIMED_OUT.
 */
export async function killProcess(
  source: ProcessSource,
  context: ToolContext,
  { pid, signal, waitMs }: KillRequest,
): Promise<{ ended: boolean; command: string }> {
  await refuseProtected(source, context, pid);
  const target = await source.get(context, pid);
  if (target === undefined || isZombie(target)) throw notThere(pid);
  if (isSpawner(target)) throw protectedProcess(pid);
  send(pid, SIGNALS[signal] ?? "SIGTERM");
  let ended = await isGone(source, context, target);
  for (let waited = 0; !ended && waited < waitMs; waited += POLL_MS) {
    await sleep(Math.min(POLL_MS, waitMs - waited));
    throwIfAborted(context);
    ended = await isGone(source, context, target);
  }
  return { ended, command: target.command || `[${target.name}]` };
}

async function refuseProtected(source: ProcessSource, context: ToolContext, pid: number): Promise<void> {
  const own = new Set([1, process.pid]);
  for (let parent = process.ppid; parent > 1 && !own.has(parent); ) {
    own.add(parent);
    parent = (await source.get(context, parent))?.ppid ?? 0;
  }
  if (own.has(pid)) throw protectedProcess(pid);
}

/** With the process that starts them all, the programs of every other call would end. It has a title from its first lines on. */
function isSpawner({ ppid, command }: RunningProcess): boolean {
  return ppid === process.pid && (command.startsWith(SPAWNER_TITLE) || command.includes(SPAWNER_MAIN));
}

function protectedProcess(pid: number): Error {
  const message = `process ${pid} is the device agent, one of its parents, what starts its programs, or the first process of the machine`;
  return fault(ErrorReason.POLICY_BLOCKED, { rules: "proc.kill/protected" }, { message });
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error: unknown) {
    const errno = (error as NodeJS.ErrnoException).code ?? "EUNKNOWN";
    if (errno === "ESRCH") throw notThere(pid);
    const message = `process ${pid} may not be signaled by the device agent's user`;
    throw fault(ErrorReason.OS_REFUSED, { field: "pid", errno }, { message, cause: error });
  }
}

async function isGone(source: ProcessSource, context: ToolContext, target: RunningProcess): Promise<boolean> {
  const now = await source.get(context, target.pid);
  return now === undefined || isZombie(now) || Math.abs(now.startMs - target.startMs) > START_JITTER_MS;
}

function notThere(pid: number): Error {
  return fault(ErrorReason.TARGET_NOT_FOUND, { field: "pid" }, { message: `there is no process ${pid}` });
}
