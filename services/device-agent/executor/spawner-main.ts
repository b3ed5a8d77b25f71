// The spawner process: starts the programs of a device agent, so that a start costs neither the agent's memory size nor its
// event loop. It reads nothing but what the agent sends, holds no secret, and ends with the agent.
import { closeSync, constants, openSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { exitOf, running, spawnProgram } from "./direct-spawner.ts";
import { killTree } from "./kill-tree.ts";
import { send as killNow, MARKER_NAME } from "./process-tree.ts";
import { SPAWNER_TITLE, type SpawnerMessage, type StartMessage } from "./spawner-messages.ts";

const { O_RDONLY, O_WRONLY } = constants;

/** The markers of the programs that run, by pid. A sandbox has none: what it holds ends with it. */
const runs = new Map<number, string | undefined>();

process.title = SPAWNER_TITLE;
// Kept now, since its end is often too sudden for that. Does nothing where there is no cache.
flushCompileCache();
process.on("message", (message: StartMessage) => void start(message));
// Without the agent no output is read and no program can be stopped.
process.on("disconnect", () => void end());
// A signal to the whole group or unit is the agent's to answer: it ends its programs in order, and then this process.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined);

async function start(message: StartMessage): Promise<void> {
  const { id } = message;
  try {
    const child = await startProgram(message);
    const pid = child.pid ?? 0;
    const exited = exitOf(child);
    runs.set(pid, message.env[MARKER_NAME]);
    send({ kind: "started", id, pid });
    const exit = await exited;
    runs.delete(pid);
    send({ kind: "exited", id, ...exit });
  } catch (error: unknown) {
    const { code, message: text } = error as NodeJS.ErrnoException;
    send({ kind: "failed", id, code, message: text });
  }
}

function startProgram(message: StartMessage) {
  const opened: number[] = [];
  const open = (fd: number | null, flags: number): number | "ignore" => {
    if (fd === null) return "ignore";
    const end = openSync(`/proc/${process.ppid}/fd/${fd}`, flags);
    opened.push(end);
    return end;
  };
  try {
    const { stdin, stdout, stderr, more = [] } = message;
    const ends = [open(stdin, O_RDONLY), open(stdout, O_WRONLY), open(stderr, O_WRONLY)];
    const others = more.map(({ fd, access }) => open(fd, access === "read" ? O_RDONLY : O_WRONLY));
    return running(spawnProgram(message, [...ends, ...others]));
  } finally {
    for (const fd of opened) closeSync(fd);
  }
}

function send(message: SpawnerMessage): void {
  // Without a callback the loss of the channel would be an error that nothing catches.
  if (process.connected) process.send?.(message, () => undefined);
}

async function end(): Promise<void> {
  await Promise.all(
    [...runs].map(async ([pid, marker]) =>
      marker === undefined ? killNow(pid, "SIGKILL") : await killTree({ pid, marker, graceMs: 0 }),
    ),
  );
  process.exit();
}
