import type { Readable, Writable } from "node:stream";
import type { RunSpec } from "./executor.ts";
import { type KillOptions, killTree } from "./kill-tree.ts";
import type { Exit } from "./spawner.ts";

/** A program that is to run until it is ended. */
export type OpenSpec = Pick<RunSpec, "argv" | "cwd" | "toolEnv" | "isolation" | "network" | "shows">;

/** A program that runs until it is ended, and reads and prints meanwhile. What it prints has to be read. */
export interface OpenProgram {
  pid: number;
  /** What it reads. An error of it means that the program is gone, which `exited` says better. */
  stdin: Writable;
  stdout: Readable;
  stderr: Readable;
  /** How it ended, once nothing of its tree is left. Rejects with the faults of Executor.run where it was never started. */
  exited: Promise<Exit>;
  /** Ends it with its whole tree. Resolves when it is gone. Safe to repeat. */
  end(): Promise<void>;
}

/** Starts programs that stay. */
export interface ProgramStarter {
  /** Starts one. Faults: those of Executor.run, as far as they are known at once; the others come by `exited`. */
  open(spec: OpenSpec): Promise<OpenProgram>;
}

/** A program that was started and has not been followed yet. */
export interface StartedOpen {
  pid: number;
  stdin: Writable;
  stdout: Readable;
  stderr: Readable;
  exited: Promise<Exit>;
}

/** Sees a program to its end: whatever of its tree is left then is killed. */
export function keepOpen(started: StartedOpen, tree: Omit<KillOptions, "pid">): OpenProgram {
  const { pid, stdin, stdout, stderr } = started;
  for (const stream of [stdin, stdout, stderr]) stream.on("error", () => undefined);
  const letGo = (): void => {
    for (const stream of [stdin, stdout, stderr]) stream.destroy();
  };
  const killed = async (): Promise<void> => void (await killTree({ pid, ...tree }));
  const toTheEnd = async (): Promise<Exit> => {
    try {
      return await started.exited;
    } finally {
      await killed();
      letGo();
    }
  };
  const exited = toTheEnd();
  // The caller may look at its end later; until then a rejection has no handler.
  exited.catch(() => undefined);
  let ending: Promise<void> | undefined;
  return {
    pid,
    stdin,
    stdout,
    stderr,
    exited,
    end() {
      ending ??= killed().then(() => exited.then(letGo, letGo));
      return ending;
    },
  };
}
