import { type ChildProcess, fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { getCompileCacheDir } from "node:module";
import { dirname, extname } from "node:path";
import { fileURLToPath } from "node:url";
import { createDirectSpawner } from "./direct-spawner.ts";
import { createFifoPool, type Fifo } from "./fifo-pool.ts";
import { MARKER_NAME } from "./process-tree.ts";
import { type Exit, type Spawner, SpawnerGone, type SpawnRequest, type Started } from "./spawner.ts";
import type { SpawnerMessage, StartMessage } from "./spawner-messages.ts";

/** What that process runs, compiled or not, as this file is. */
export const SPAWNER_MAIN = fileURLToPath(new URL(`./spawner-main${extname(import.meta.url)}`, import.meta.url));

/** It keeps no data, and its size is what each start costs. */
const SMALL = ["--max-old-space-size=64", "--max-semi-space-size=1", "--v8-pool-size=0"];

/** A program that was asked for, until it ended. */
interface Run {
  waits: boolean;
  pid: PromiseWithResolvers<number>;
  exit: PromiseWithResolvers<Exit>;
}

/** A process that starts programs, with what it was asked for. */
interface SpawnerProcess {
  child: ChildProcess;
  runs: Map<number, Run>;
}

/**
 * Starts programs from a small process of its own, which is started at once and again when it ended. fork(2) copies the page
 * tables of the process that calls it, so that a start from a large agent takes milliseconds in which its event loop stands
 * still; this way it takes the agent 0.1 ms. If the process dies, the programs that it started are reported as SpawnerGone. If
 * the agent dies, it kills them.
 *
 * Where there are no FIFOs (anything but Linux) programs are started directly.
 */
export function createSpawnerProcess(): Spawner & Disposable {
  const direct = createDirectSpawner();
  let current = process.platform === "linux" ? open() : undefined;
  let nextId = 1;
  // From there too: a fork of the agent for every hundred pipes would cost as much as its size at each of them.
  const fifos = createFifoPool((program, args) => {
    current ??= open();
    return runIn(current, nextId++, program, args);
  });

  function open(): SpawnerProcess {
    const opened = openProcess(() => {
      if (current === opened) current = undefined;
    });
    return opened;
  }

  return {
    fifos,
    async start(request) {
      const [out, err] = (await fifos.take(2)) ?? [];
      if (out === undefined || err === undefined) return await direct.start(request);
      current ??= open();
      return await startIn(current, nextId++, request, [out, err]);
    },
    [Symbol.dispose]() {
      current?.child.disconnect();
      current = undefined;
    },
  };
}

function openProcess(onGone: () => void): SpawnerProcess {
  const child = fork(SPAWNER_MAIN, [], {
    execArgv: SMALL,
    env: compileCache(),
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  const runs = new Map<number, Run>();
  // Only a program that runs is a reason to keep the agent's process.
  child.unref();
  child.channel?.unref();
  child.on("message", (message: SpawnerMessage) => {
    const run = runs.get(message.id);
    if (run !== undefined) report(run, message);
    if (message.kind !== "started") forget({ child, runs }, message.id);
  });
  const rejectAll = (error: Error): void => {
    onGone();
    for (const [id, { pid, exit }] of [...runs]) {
      pid.reject(error);
      exit.reject(error);
      forget({ child, runs }, id);
    }
  };
  // It could not be started, so nothing ran.
  child.once("error", rejectAll);
  child.once("disconnect", () => rejectAll(new SpawnerGone("the process that starts programs ended")));
  return { child, runs };
}

/**
 * The cache of compiled code that this process uses, if it does. What strips the types of a source file takes as much memory as
 * all the rest of the spawner, and is not loaded for a file that the cache has.
 */
function compileCache(): Record<string, string> {
  const folder = getCompileCacheDir();
  // A folder of this version and build of Node inside the one that is named.
  return folder === undefined ? {} : { NODE_COMPILE_CACHE: dirname(folder) };
}

async function startIn(
  spawner: SpawnerProcess,
  id: number,
  { input, waits = false, ...request }: SpawnRequest,
  [out, err]: [Fifo, Fifo],
): Promise<Started> {
  const stdout = out.openRead();
  const stderr = err.openRead();
  try {
    const stdin = input === "ignore" ? null : input;
    const cwd = seenFromOutside(request.cwd);
    const { pid, exit } = ask(spawner, { ...request, cwd, id, stdin, stdout: out.fd, stderr: err.fd }, waits);
    return { pid: await pid.promise, exited: exit.promise, stdout, stderr };
  } catch (error: unknown) {
    stdout.destroy();
    stderr.destroy();
    throw error;
  } finally {
    out.close();
    err.close();
  }
}

/** Runs a program of the agent's own, which reads and prints nothing, to its end. Rejects where that is not its success. */
async function runIn(spawner: SpawnerProcess, id: number, program: string, args: readonly string[]): Promise<void> {
  const silent = { stdin: null, stdout: null, stderr: null };
  const env = { [MARKER_NAME]: randomUUID() };
  const { pid, exit } = ask(spawner, { id, program, argv0: program, args, cwd: "/", env, ...silent });
  await pid.promise;
  const { code, signal } = await exit.promise;
  if (code !== 0) throw new Error(`${program} ended with ${signal ?? code}`);
}

/** Has a program started. One that waits is no reason to keep this process. */
function ask(spawner: SpawnerProcess, message: StartMessage, waits = false): Run {
  const { child, runs } = spawner;
  const { id } = message;
  const run: Run = { waits, pid: Promise.withResolvers(), exit: Promise.withResolvers() };
  // A stop may end the run first, and then this rejection has no handler.
  run.exit.promise.catch(() => undefined);
  if (!waits) child.channel?.ref();
  runs.set(id, run);
  const onFailed = (error: unknown): void => {
    forget(spawner, id);
    run.pid.reject(error);
  };
  try {
    // A message that was not sent whole was not read, so nothing ran.
    child.send(message, (error) => error && onFailed(error));
  } catch (error: unknown) {
    onFailed(error);
  }
  return run;
}

function report({ pid, exit }: Run, message: SpawnerMessage): void {
  if (message.kind === "started") pid.resolve(message.pid);
  else if (message.kind === "failed") pid.reject(Object.assign(new Error(message.message), { code: message.code }));
  else exit.resolve({ code: message.code, signal: message.signal });
}

function forget({ child, runs }: SpawnerProcess, id: number): void {
  runs.delete(id);
  if (runs.values().every((run) => run.waits)) child.channel?.unref();
}

/** A folder that is held by a descriptor, as another process finds it. */
function seenFromOutside(path: string): string {
  return path.replace(/^\/proc\/self\//, `/proc/${process.pid}/`);
}
