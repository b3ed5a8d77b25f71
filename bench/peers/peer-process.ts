import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { ProcStat } from "../../services/device-agent/executor/proc-stat.ts";
import { allProcesses } from "../../services/device-agent/executor/process-tree.ts";
import type { Usage } from "../measure/server-process.ts";

/** A program that is not ours, with everything that it starts. */
export interface PeerProcess {
  usage(): Promise<Usage>;
  stop(): Promise<void>;
}

/** Linux counts processor time in hundredths of a second (USER_HZ), on every architecture. */
const US_PER_TICK = 10_000;

const START_MS = 30_000;

/** Starts a command in a session of its own and waits until it listens. `home` is its home folder. */
export async function startPeer(command: readonly string[], port: number, home: string): Promise<PeerProcess> {
  const env = { ...process.env, HOME: home, XDG_STATE_HOME: home, XDG_CONFIG_HOME: home, XDG_DATA_HOME: home };
  const [program = "", ...args] = command;
  const child = spawn(process.execPath, [program, ...args], { env, cwd: home, stdio: "ignore", detached: true });
  const pid = child.pid ?? 0;
  const stop = async (): Promise<void> => {
    for (const member of membersOf(pid)) process.kill(member.pid, "SIGKILL");
  };
  for (const end = Date.now() + START_MS; !(await listens(port)); await sleep(100)) {
    if (Date.now() < end && child.exitCode === null) continue;
    await stop();
    throw new Error(`${program} did not listen on its port`);
  }
  return {
    async usage() {
      const members = membersOf(pid);
      const cpuUs = members.reduce((sum, { cpuTicks }) => sum + cpuTicks * US_PER_TICK, 0);
      return { cpuUs, rssBytes: members.reduce((sum, member) => sum + rssOf(member.pid), 0) };
    },
    stop,
  };
}

/** The processes of a session. */
function membersOf(session: number): ProcStat[] {
  return allProcesses().filter((one) => one.session === session);
}

function rssOf(pid: number): number {
  try {
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "latin1"))?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
}
