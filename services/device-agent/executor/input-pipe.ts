import { closeSync, constants, openSync } from "node:fs";
import { Socket } from "node:net";
import type { Writable } from "node:stream";
import type { FifoPool } from "./fifo-pool.ts";

const { O_RDONLY, O_WRONLY, O_RDWR, O_NONBLOCK } = constants;

/** A pipe for what a program reads while it runs. */
export interface InputPipe {
  /** The program's end. */
  read: number;
  /** Ours. */
  stdin: Writable;
  /** Lets go of the program's end, which is to be called once the program was started, or was not. */
  release(): void;
}

/** Makes one. Throws an Error where there are no FIFOs, as anywhere but on Linux. */
export async function openInputPipe(fifos: FifoPool): Promise<InputPipe> {
  const [fifo] = (await fifos.take(1)) ?? [];
  if (fifo === undefined) throw new Error("no FIFOs can be made here");
  const path = `/proc/self/fd/${fifo.fd}`;
  // With both ends held, neither open below waits for the other one.
  const both = openSync(path, O_RDWR | O_NONBLOCK);
  try {
    const read = openSync(path, O_RDONLY);
    const stdin = writerOf(openSync(path, O_WRONLY | O_NONBLOCK));
    return { read, stdin, release: () => closeSync(read) };
  } finally {
    closeSync(both);
    fifo.close();
  }
}

/** Writes into a pipe, and keeps no process alive. */
export function writerOf(fd: number): Writable {
  return new Socket({ fd, readable: false, writable: true }).unref();
}
