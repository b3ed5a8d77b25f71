import type { DroppedFolder } from "./program-folders.ts";
import type { Isolation } from "./sandbox/isolation.ts";

/** Runs programs for tools. One interface, so that a tool does not know how far its programs are kept apart. */
export interface Executor {
  /** How far it can keep a program apart: the highest level that was shown to hold. */
  readonly isolation: Isolation;

  /** Why that is not higher, and what to install. Empty where there is nothing higher. */
  readonly shortfall: string;

  /** Folders of the PATH that no program is taken from by name, because a caller or another user could write them. */
  readonly droppedFolders: readonly DroppedFolder[];

  /** The absolute path of a program on the fixed PATH, or undefined where there is none. */
  resolve(program: string): string | undefined;

  /**
   * Runs one program to its end and returns what became of it. A program that fails, is signaled, runs out of time or
   * is canceled is an outcome. Faults: START_FAILED{program,cause} where it could not be started, so that nothing ran;
   * INVALID_INPUT{field,rule} for a relative program path or a reserved environment variable; SANDBOX_UNAVAILABLE{required}
   * where it cannot keep the program as far apart as it has to be, so that nothing ran.
   */
  run(spec: RunSpec): Promise<RunOutcome>;
}

export interface RunSpec {
  /** The program and its arguments. The first is a name on the fixed PATH or an absolute path. No shell reads them. */
  argv: readonly string[];
  /** The folder to run in. The caller has checked it: see Roots. */
  cwd: string;
  /** Variables that the caller of the tool asks for. Reserved names are refused. Default none. */
  env?: Readonly<Record<string, string>>;
  /** Variables that the tool's own code sets. Not checked; wins over `env`. Default none. */
  toolEnv?: Readonly<Record<string, string>>;
  /** How far it is kept apart: exactly so, never less. Default "none". */
  isolation?: Isolation;
  /** Whether it gets the machine's network where it is kept apart. Default false. */
  network?: boolean;
  /** Folders that it sees besides where it is kept apart, by their real paths, and cannot change. Default none. */
  shows?: readonly string[];
  /** What the program reads. Default nothing: end of file at once. */
  stdin?: string | Uint8Array;
  /** The longest it may run, in milliseconds. Then its whole tree is killed. */
  timeoutMs: number;
  /** Aborting it kills the whole tree. With a reason named "TimeoutError" the outcome is timed_out, else canceled. */
  signal: AbortSignal;
  /** How much of each stream is kept, in bytes: the head and the tail where there is more. Default 262144. */
  maxOutputBytes?: number;
  /**
   * Gets every chunk as it comes, whole, whatever maxOutputBytes says. While a promise that it returned is pending, no more of
   * that stream is read, so that a program which prints faster waits in its own write. Once it has ended, or has to, what is
   * left is read without a pause.
   */
  onOutput?: ((stream: OutputStream, chunk: Uint8Array) => Promise<void> | undefined) | undefined;
}

/** Which of a program's two outputs. */
export type OutputStream = "stdout" | "stderr";

/** What became of a program that was started. */
export type RunOutcome = RunResult &
  (
    | { kind: "exited"; code: number }
    | { kind: "signaled"; signal: NodeJS.Signals; number: number }
    | { kind: "timed_out"; survivors: number }
    | { kind: "canceled"; survivors: number }
  );

/** What every outcome carries. */
export interface RunResult {
  /** The file that was run: the absolute path that the program's name stood for. */
  program: string;
  /** What was kept of standard output, decoded as UTF-8. */
  stdout: string;
  /** What was kept of standard error, decoded as UTF-8. */
  stderr: string;
  /** True when output was left out. */
  truncated: boolean;
  /** How long it ran, in whole milliseconds. */
  durationMs: number;
  /** True when the program ended and children of it were still in its group or held its output. They were killed. */
  leftBehind: boolean;
}
