import { type ChildProcess, type StdioOptions, spawn } from "node:child_process";
import { closeSync } from "node:fs";
import { type Fifo, fifoPool } from "./fifo-pool.ts";
import type { Exit, Spawner, SpawnRequest, Started } from "./spawner.ts";

/**
 * Starts programs from this process. They print into real pipes where these can be had, else into Node's. A start forks,
 * so that it takes as long as this process is large, and stops its event loop for as long: see createSpawnerProcess.
 */
export function createDirectSpawner(): Spawner {
  return {
    fifos: fifoPool,
    async start(request) {
      const [out, err] = (await fifoPool.take(2)) ?? [];
      if (out === undefined || err === undefined) return await withNodePipes(request);
      return await withFifos(request, out, err);
    },
  };
}

async function withFifos(request: SpawnRequest, out: Fifo, err: Fifo): Promise<Started> {
  const stdout = out.openRead();
  const stderr = err.openRead();
  const ends: number[] = [];
  try {
    for (const fifo of [out, err]) ends.push(fifo.openWrite());
    const child = await running(spawnProgram(request, [request.input, ...ends, ...moreOf(request)]));
    if (request.waits) child.unref();
    return { pid: child.pid ?? 0, exited: exitOf(child), stdout, stderr };
  } catch (error: unknown) {
    stdout.destroy();
    stderr.destroy();
    throw error;
  } finally {
    for (const end of ends) closeSync(end);
    out.close();
    err.close();
  }
}

async function withNodePipes(request: SpawnRequest): Promise<Started> {
  const child = await running(spawnProgram(request, [request.input, "pipe", "pipe", ...moreOf(request)]));
  const { stdout, stderr } = child;
  if (stdout === null || stderr === null) throw new Error("a program was started without output streams");
  return { pid: child.pid ?? 0, exited: exitOf(child), stdout, stderr };
}

function moreOf({ more = [] }: SpawnRequest): number[] {
  return more.map(({ fd }) => fd);
}

/** Starts a program as the leader of its own session and group, with exactly what the request says. */
export function spawnProgram(request: Omit<SpawnRequest, "input">, stdio: StdioOptions): ChildProcess {
  const { program, args, argv0, cwd, env } = request;
  return spawn(program, args, { argv0, cwd, env, stdio, detached: true, shell: false });
}

/** Some failures are thrown by spawn, others come as an event; without an id nothing runs. */
export function running(child: ChildProcess): ChildProcess | Promise<never> {
  if (child.pid !== undefined) return child;
  return new Promise((_, reject) => child.once("error", reject));
}

/** To be called in the turn of the event loop in which the program was started, so that its end is not missed. */
export function exitOf(child: ChildProcess): Promise<Exit> {
  return new Promise((resolve) => child.once("exit", (code, signal) => resolve({ code, signal })));
}
