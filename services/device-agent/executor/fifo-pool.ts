import { execFile } from "node:child_process";
import { closeSync, constants, mkdtempSync, openSync, rmSync } from "node:fs";
import { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { promisify } from "node:util";
import { isAccessible } from "../../../lib/files/is-accessible.ts";

/** A pipe of which neither end is open yet. */
export interface Fifo {
  /** Holds it without being an end of it. Another process of the same user opens an end as /proc/PID/fd/N. */
  readonly fd: number;
  /** The end that reads. To be opened first: opening the other one waits for it. */
  openRead(): Readable;
  /** The program's end, as a descriptor. The caller closes it. */
  openWrite(): number;
  /** Lets go of the pipe; its open ends stay. */
  close(): void;
}

/** Makes real pipes. */
export interface FifoPool {
  /** So many pipes, or undefined where none can be made. The caller closes them. */
  take(count: number): Promise<Fifo[] | undefined>;
}

/** How many are made at once, and at how many the next ones are made. */
const BATCH = 96;
const LOW = 32;

/** O_PATH of Linux: holds a FIFO without being an end of it. */
const O_PATH = 0o10000000;

const { O_RDONLY, O_WRONLY, O_NONBLOCK, W_OK } = constants;

/** A folder in memory, of everybody's as /tmp is: a hundred inodes on a disk cost as much as the starts of several programs. */
const IN_MEMORY = "/dev/shm";

/** By its full path: this runs for the agent itself, whatever the PATH of programs says. */
const MKFIFO = "/usr/bin/mkfifo";

/** Runs a program to its end. Rejects where that is not its success. */
export type RunFile = (program: string, args: readonly string[]) => Promise<unknown>;

const execute = promisify(execFile);

/** Runs it from this process. */
export const runFromHere: RunFile = (program, args) => execute(program, args, { env: {} });

/**
 * Pipes for what programs print, on Linux. What Node calls a pipe is a socket pair, and a program cannot open a socket
 * by name: "> /dev/stderr" fails with ENXIO. Node cannot call pipe(2), so `mkfifo` makes FIFOs, many at once; each is
 * unlinked at once, reached through a held descriptor only, and used for one run: a program that keeps an end cannot
 * read or write what belongs to a later one.
 *
 * @param runFile runs `mkfifo`; where it fails, this process tries by itself. Default: only this process.
 */
export function createFifoPool(runFile = runFromHere): FifoPool {
  const ready: number[] = [];
  let filling: Promise<void> | undefined;
  let broken = process.platform !== "linux";

  const fill = async (): Promise<void> => {
    try {
      ready.push(...(await makeFifos(BATCH, runFile).catch(() => makeFifos(BATCH, runFromHere))));
    } catch {
      // Without mkfifo or a temporary folder programs get Node's own pipes.
      broken = true;
    }
    filling = undefined;
  };

  return {
    async take(count) {
      while (!broken && ready.length < count) {
        filling ??= fill();
        await filling;
      }
      if (ready.length < count) return undefined;
      const taken = ready.splice(-count);
      if (!broken && ready.length < LOW) filling ??= fill();
      return taken.map(fifoOf);
    },
  };
}

async function makeFifos(count: number, runFile: RunFile): Promise<number[]> {
  const folder = mkdtempSync(join(isAccessible(IN_MEMORY, W_OK) ? IN_MEMORY : tmpdir(), "reeve-fifo-"));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  // The agent may be asked to end just now, while the program still makes some: what that leaves is empty files.
  const removeAtEnd = (): void => {
    try {
      remove();
    } catch {
      // The end of the process says more than this could.
    }
  };
  process.once("exit", removeAtEnd);
  try {
    const paths = Array.from({ length: count }, (_, at) => join(folder, String(at)));
    await runFile(MKFIFO, ["-m", "600", ...paths]);
    return paths.map((path) => openSync(path, O_PATH));
  } finally {
    process.off("exit", removeAtEnd);
    remove();
  }
}

function fifoOf(fd: number): Fifo {
  const open = (flags: number): number => openSync(`/proc/self/fd/${fd}`, flags);
  return {
    fd,
    openRead: () => new Socket({ fd: open(O_RDONLY | O_NONBLOCK), readable: true, writable: false }),
    openWrite: () => open(O_WRONLY),
    close: () => closeSync(fd),
  };
}

/** Shared by all that start programs from this process: made when first needed. */
export const fifoPool: FifoPool = createFifoPool();
