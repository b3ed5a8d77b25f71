import { realpathSync } from "node:fs";
import { availableParallelism } from "node:os";
import { ErrorReason } from "../../../../gen/ts/reeve/common/v1/error_pb.ts";
import { within } from "../../../../lib/async/within.ts";
import { fault } from "../../../../lib/fault/fault.ts";
import type { RunOutcome, RunSpec } from "../executor.ts";
import { follow } from "../follow.ts";
import type { OpenSpec, StartedOpen } from "../open-program.ts";
import { startFailed } from "../program-path.ts";
import type { Exit, Started } from "../spawner.ts";
import type { Isolation } from "./isolation.ts";
import { type Limits, type ProgramStart, startScript } from "./start-script.ts";
import type { View } from "./view.ts";
import type { Waiting } from "./waiting.ts";

/** Where sandboxes for one view come from. */
export interface SandboxSource {
  take(): Promise<Waiting>;
  /** A run has ended. */
  done(): void;
  /** A sandbox could not be set up: something that it hides or shows may be gone. */
  broken(): void;
}

/** A program that is to stay in a sandbox. */
export interface SandboxOpen {
  spec: OpenSpec;
  isolation: View["isolation"];
  /** The absolute path. */
  program: string;
  /** The whole environment. */
  env: Readonly<Record<string, string>>;
}

/** A program that is to run in a sandbox. */
export interface SandboxRun extends SandboxOpen {
  spec: RunSpec;
  /** The value of the marker variable in its environment. */
  marker: string;
  graceMs: number;
}

const GIB = 1024 ** 3;

/** Limits by level; the time of the processor comes from the run's own time. */
const LIMITS: Readonly<Record<View["isolation"], Omit<Limits, "cpuSeconds">>> = {
  read_only: { memoryBytes: 8 * GIB, processes: 512, fileBytes: 64 * 1024 ** 2, openFiles: 1024 },
  workspace: { memoryBytes: 32 * GIB, processes: 4096, fileBytes: 16 * GIB, openFiles: 4096 },
};

/** The fault of a run that needs more than the device can do. Nothing ran. */
export function sandboxUnavailable(required: Isolation, why: string, cause?: unknown): Error {
  const message = `the call may run only at the sandbox level ${required}, which this device cannot keep: ${why}`;
  return fault(ErrorReason.SANDBOX_UNAVAILABLE, { required }, { message, cause });
}

/**
 * Runs a program in a waiting sandbox. Where the sandbox cannot be set up another one is tried once, since a file that it was to
 * hide may have been removed. Faults: START_FAILED{program,cause}; SANDBOX_UNAVAILABLE{required}; nothing ran then.
 */
export async function runInSandbox(run: SandboxRun, source: SandboxSource): Promise<RunOutcome> {
  const input = (run.spec.stdin?.length ?? 0) > 0 ? "file" : "none";
  const script = scriptOf(run, input, cpuSeconds(run.spec.timeoutMs));
  try {
    return await attempt(run, script, source);
  } catch (error: unknown) {
    if (!(error instanceof NotSetUp)) throw error;
    source.broken();
  }
  try {
    return await attempt(run, script, source);
  } catch (error: unknown) {
    throw error instanceof NotSetUp ? sandboxUnavailable(run.isolation, error.message, error) : error;
  }
}

/** How much of the processor's time a program may take that stays, in seconds: after that it is started again. */
const OPEN_CPU_SECONDS = 24 * 3600;

/** Starts a program that stays in a sandbox. Its end rejects with the faults above where it was never started. */
export async function openInSandbox(run: SandboxOpen, source: SandboxSource): Promise<StartedOpen> {
  const script = scriptOf(run, "pipe", OPEN_CPU_SECONDS);
  const waiting = await taken(run, source);
  const { started } = waiting;
  const said = firstWords(started);
  const stdin = waiting.beginOpen(script);
  const exited = started.exited
    .then((exit) => requireStarted(exit, waiting, run, said))
    .catch((error: unknown) => {
      if (!(error instanceof NotSetUp)) throw error;
      source.broken();
      throw sandboxUnavailable(run.isolation, error.message, error);
    })
    .finally(() => {
      waiting.close();
      source.done();
    });
  return { ...started, stdin, exited };
}

function scriptOf(run: SandboxOpen, input: ProgramStart["input"], seconds: number): string {
  return startScript({
    program: run.program,
    args: run.spec.argv.slice(1),
    cwd: realFolder(run),
    // The home folder is not shown.
    env: { ...run.env, HOME: "/tmp" },
    input,
    limits: { ...LIMITS[run.isolation], cpuSeconds: seconds },
  });
}

/** The sandbox ended before its shell had read the script: nothing ran. */
class NotSetUp extends Error {
  override readonly name = "NotSetUp";
}

async function attempt(run: SandboxRun, script: string, source: SandboxSource): Promise<RunOutcome> {
  const waiting = await taken(run, source);
  const { started } = waiting;
  const said = firstWords(started);
  try {
    // Where nothing reads it the sandbox has ended, and its exit says why.
    waiting.begin(script, run.spec.stdin);
    const exited = started.exited.then((exit) => requireStarted(exit, waiting, run, said));
    // A stop may end the run first, and then a rejection has no handler.
    exited.catch(() => undefined);
    const { program, marker, graceMs } = run;
    return await follow({ ...started, exited, contained: true }, run.spec, { program, marker, graceMs });
  } finally {
    waiting.close();
    source.done();
  }
}

async function taken({ isolation }: SandboxOpen, source: SandboxSource): Promise<Waiting> {
  try {
    return await source.take();
  } catch (error: unknown) {
    throw sandboxUnavailable(isolation, error instanceof Error ? error.message : String(error), error);
  }
}

async function requireStarted(
  exit: Exit,
  waiting: Waiting,
  { program, spec }: SandboxOpen,
  said: () => Promise<string>,
): Promise<Exit> {
  const status = waiting.status();
  if (status === "started") return exit;
  if (status === "") throw new NotSetUp((await said()) || `bubblewrap ended with ${exit.code ?? exit.signal}`);
  const cause = status.failed === "program" ? whyNot(exit) : CAUSES[status.failed];
  throw startFailed(spec.argv[0] ?? program, cause);
}

/** How long the words of a sandbox that has ended may take to come, in milliseconds. */
const WORDS_MS = 200;

const CAUSES = {
  input: "what it is to read is larger than the sandbox keeps",
  cwd: "its folder is not shown in the sandbox",
};

/** What the exit code of a shell says whose exec failed (POSIX, 2.8.2). */
function whyNot({ code }: Exit): string {
  return code === 126 ? "EACCES" : "ENOENT: the sandbox does not show it";
}

/** What bwrap says of itself, if it does: one line. */
function firstWords({ stderr }: Started): () => Promise<string> {
  let text = "";
  const closed = new Promise<void>((resolve) => void stderr.once("close", resolve));
  stderr.on("data", (chunk: Buffer) => {
    if (text.length < 300) text += chunk.toString("utf8", 0, 300);
  });
  return async () => {
    await within(closed, WORDS_MS);
    return text.split("\n")[0] ?? "";
  };
}

/** The folder by its name, since descriptors of the agent are not shown. Fault: START_FAILED where it is gone. */
function realFolder({ spec, program }: SandboxOpen): string {
  try {
    return realpathSync.native(spec.cwd);
  } catch (error: unknown) {
    throw startFailed(spec.argv[0] ?? program, (error as NodeJS.ErrnoException).code ?? "unknown", error);
  }
}

function cpuSeconds(timeoutMs: number): number {
  return (Math.ceil(timeoutMs / 1000) + 1) * availableParallelism();
}
