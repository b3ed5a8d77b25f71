import type { Readable } from "node:stream";
import type { FifoPool } from "./fifo-pool.ts";

/** One program to start. */
export interface SpawnRequest {
  /** The file to run, by its absolute path. */
  program: string;
  /** What the program finds as its own name. */
  argv0: string;
  args: readonly string[];
  cwd: string;
  /** The whole environment of the program. */
  env: Readonly<Record<string, string>>;
  /** An open descriptor that the program reads, or "ignore" for end of file at once. The caller closes it. */
  input: number | "ignore";
  /** Further descriptors, which the program gets as 3, 4 and so on. The caller closes them. Default none. */
  more?: readonly PassedDescriptor[];
  /** True where it is no reason to keep this process: it waits, and nothing follows it yet. Default false. */
  waits?: boolean;
}

/** An open descriptor for a program. */
export interface PassedDescriptor {
  fd: number;
  access: "read" | "write";
}

/** How a program ended: one of both is set. */
export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** A program that was started, as the leader of its own session and process group. */
export interface Started {
  pid: number;
  /** Rejects with SpawnerGone where the spawner ended first, so that how it ended is not known. */
  exited: Promise<Exit>;
  stdout: Readable;
  stderr: Readable;
  /** True where no process of it outlives it. Default false: a group and what holds the output may. */
  contained?: boolean;
}

/** Starts programs. */
export interface Spawner {
  /** Pipes, made as programs are started. */
  readonly fifos: FifoPool;
  /**
   * Starts one. Rejects with what the operating system says (an error with a `code`), and then nothing was started; with
   * SpawnerGone where that is not known.
   */
  start(request: SpawnRequest): Promise<Started>;
}

/** The process that starts programs ended while this one ran, or was about to: what it did is not known. */
export class SpawnerGone extends Error {
  override readonly name = "SpawnerGone";
}
