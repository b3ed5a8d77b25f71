import { closeSync, constants, openSync, readSync, writeSync } from "node:fs";
import { Socket } from "node:net";
import type { Writable } from "node:stream";
import { writerOf } from "../input-pipe.ts";
import type { Spawner, Started } from "../spawner.ts";
import { type StartStatus, statusOf } from "./start-script.ts";
import { COMMAND } from "./view.ts";

/** A sandbox in which a shell waits for what it is to become. For one run. */
export interface Waiting {
  started: Started;
  /** When it was started, on the clock of performance.now(). */
  startedAt: number;
  /** True once it has ended. */
  readonly ended: boolean;
  /** Hands over the script and what the program is to read. Where it has ended nothing reads them. */
  begin(script: string, input: string | Uint8Array | undefined): void;
  /** Hands over the script. What is written into the result is what the program reads. */
  beginOpen(script: string): Writable;
  /** What the shell has said so far. Whole once it has ended. */
  status(): StartStatus;
  /** Ends it, if it has not, and lets go of its descriptors. */
  close(): void;
}

/** What a waiting sandbox is started from. */
export interface WaitingOptions {
  spawner: Spawner;
  /** The absolute path of bwrap. */
  bwrap: string;
  /** Held files: bwrap's arguments, the filter, and what is copied in. */
  files: readonly number[];
}

const { O_RDONLY, O_WRONLY, O_RDWR, O_NONBLOCK } = constants;

/** What a pipe of Linux holds (pipe(7)) without a reader, less a page that may be partly used. */
const PIPE_BYTES = 60 * 1024;

/** Starts one. Rejects where the operating system refuses, or gives no FIFOs. */
export async function startWaiting({ spawner, bwrap, files }: WaitingOptions): Promise<Waiting> {
  const fifos = await spawner.fifos.take(3);
  if (fifos === undefined) throw new Error("no FIFOs can be made here");
  const [script, stdin, status] = fifos.map(({ fd }) => fd) as [number, number, number];
  using opened = new DisposableStack();
  const open = (fd: number, flags: number): number => opened.adopt(openSync(`/proc/self/fd/${fd}`, flags), closeSync);
  for (const fifo of fifos) opened.defer(() => fifo.close());
  // With both ends held, neither open below waits for the other one.
  for (const fd of [script, stdin, status]) open(fd, O_RDWR | O_NONBLOCK);
  const started = await spawner.start({
    program: bwrap,
    argv0: "bwrap",
    args: COMMAND,
    cwd: "/",
    // It is what /proc/1/environ shows inside.
    env: {},
    input: open(script, O_RDONLY),
    more: [
      { fd: open(stdin, O_RDONLY), access: "read" },
      { fd: open(status, O_WRONLY), access: "write" },
      ...files.map((fd) => ({ fd: open(fd, O_RDONLY), access: "read" as const })),
    ],
    waits: true,
  });
  return waiting(started, {
    script: openSync(`/proc/self/fd/${script}`, O_WRONLY | O_NONBLOCK),
    stdin: openSync(`/proc/self/fd/${stdin}`, O_WRONLY | O_NONBLOCK),
    status: openSync(`/proc/self/fd/${status}`, O_RDONLY | O_NONBLOCK),
  });
}

function waiting(started: Started, ends: { script: number; stdin: number; status: number }): Waiting {
  const open = new Set(Object.values(ends));
  const close = (fd: number): void => {
    if (open.delete(fd)) closeSync(fd);
  };
  let ended = false;
  const end = (): void => {
    ended = true;
  };
  started.exited.then(end, end);
  // Alone it keeps no process.
  for (const stream of [started.stdout, started.stderr]) (stream as Socket).unref();
  const handOver = (script: string): void => {
    for (const stream of [started.stdout, started.stderr]) (stream as Socket).ref();
    open.delete(ends.script);
    feed(ends.script, script);
  };
  return {
    started,
    startedAt: performance.now(),
    get ended() {
      return ended;
    },
    begin(script, input) {
      open.delete(ends.stdin);
      feed(ends.stdin, input ?? "");
      handOver(script);
    },
    beginOpen(script) {
      open.delete(ends.stdin);
      handOver(script);
      return writerOf(ends.stdin);
    },
    status: () => statusOf(readAll(ends.status)),
    close() {
      for (const fd of [...open]) close(fd);
      if (ended) return;
      // The shell reads the end of its script, and ends.
      started.stdout.destroy();
      started.stderr.destroy();
    },
  };
}

/** Writes into a pipe and closes it, later where it is more than a pipe holds. */
function feed(fd: number, data: string | Uint8Array): void {
  const bytes = typeof data === "string" ? Buffer.from(data) : data;
  if (bytes.length > PIPE_BYTES) {
    const socket = new Socket({ fd, readable: false, writable: true });
    // A program that reads nothing of its input, or only its beginning, is not a failure.
    socket.on("error", () => undefined);
    socket.end(bytes);
    return;
  }
  try {
    if (bytes.length > 0) writeSync(fd, bytes);
  } catch {
    // Nothing reads it (EPIPE).
  } finally {
    closeSync(fd);
  }
}

function readAll(fd: number): string {
  const buffer = Buffer.alloc(64);
  try {
    return buffer.toString("utf8", 0, readSync(fd, buffer));
  } catch {
    // EAGAIN: nothing was written.
    return "";
  }
}
