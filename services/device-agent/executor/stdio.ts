import { type ChildProcess, type SpawnOptions, type StdioOptions, spawn } from "node:child_process";
import { closeSync } from "node:fs";
import { Socket } from "node:net";
import type { Readable } from "node:stream";
import { createFifoPool, type PipeEnds } from "./fifo-pool.ts";

/** A program that was started, with what it prints. */
export interface Started {
  child: ChildProcess;
  stdout: Readable;
  stderr: Readable;
}

/** Shared by all executors of the process: a store of unused FIFOs, made when first needed. */
const pool = createFifoPool();

/**
 * Starts a program that prints into real pipes where they can be had, else into Node's. `input` is the descriptor it
 * reads, or "ignore". Throws what the operating system says, and then nothing was started.
 */
export async function spawnWithPipes(
  program: string,
  args: readonly string[],
  options: SpawnOptions,
  input: number | "ignore",
): Promise<Started> {
  const [out, err] = (await pool.take(2)) ?? [];
  if (out === undefined || err === undefined) return await withNodePipes(program, args, options, input);
  try {
    const stdio: StdioOptions = [input, out.write, err.write];
    const child = await running(spawn(program, args, { ...options, stdio }));
    return { child, stdout: reader(out), stderr: reader(err) };
  } catch (error: unknown) {
    closeSync(out.read);
    closeSync(err.read);
    throw error;
  } finally {
    closeSync(out.write);
    closeSync(err.write);
  }
}

async function withNodePipes(
  program: string,
  args: readonly string[],
  options: SpawnOptions,
  input: number | "ignore",
): Promise<Started> {
  const child = await running(spawn(program, args, { ...options, stdio: [input, "pipe", "pipe"] }));
  const { stdout, stderr } = child;
  if (stdout === null || stderr === null) throw new Error("a program was started without output streams");
  return { child, stdout, stderr };
}

/** Some failures are thrown by spawn, others come as an event; without an id nothing runs. */
function running(child: ChildProcess): ChildProcess | Promise<never> {
  if (child.pid !== undefined) return child;
  return new Promise((_, reject) => child.once("error", reject));
}

function reader({ read }: PipeEnds): Readable {
  return new Socket({ fd: read, readable: true, writable: false });
}
