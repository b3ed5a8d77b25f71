import { constants } from "node:os";
import type { Readable } from "node:stream";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { within } from "../../../lib/async/within.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { type Capture, createCapture } from "./capture.ts";
import type { OutputStream, RunOutcome, RunResult, RunSpec } from "./executor.ts";
import { type KillOptions, killTree } from "./kill-tree.ts";
import { groupExists } from "./process-tree.ts";
import { type Exit, SpawnerGone, type Started } from "./spawner.ts";

/** How a run is ended that has to be. */
export interface EndOptions {
  /** The file that was started. */
  program: string;
  /** The value of the marker variable that the program was started with. */
  marker: string;
  /** How long its tree may take to end after SIGTERM, in milliseconds. */
  graceMs: number;
}

/** What is kept of each stream where the caller does not say, in bytes. */
const DEFAULT_OUTPUT_BYTES = 256 * 1024;

/** How long output may stay open after the program has ended, in milliseconds, before the processes that hold it are killed. */
const DRAIN_MS = 500;

type StopKind = "timed_out" | "canceled";

/**
 * Gathers what a program prints, which has just been started, and sees it to its end. Fault: INTERRUPTED where the process that
 * started it ended before; its tree was killed then.
 */
export async function follow(started: Started, spec: RunSpec, end: EndOptions): Promise<RunOutcome> {
  const startedAt = performance.now();
  const { pid, exited, stdout, stderr, contained = false } = started;
  const out = capture(stdout, "stdout", spec);
  const err = capture(stderr, "stderr", spec);
  const closed = Promise.all([out.closed, err.closed]).then(() => undefined);
  const stop = watchStop(spec);
  try {
    const first = await Promise.race([exited, stop.promise]);
    // What is left is a pipe's worth, and how long its reader takes is no reason to think that a child holds the pipe.
    out.readOn();
    err.readOn();
    const ending =
      typeof first === "string"
        ? await stopTree(pid, first, end)
        : await endTree({ pid, contained }, first, closed, end);
    await drain(started, closed);
    const durationMs = Math.round(performance.now() - startedAt);
    return { program: end.program, ...textOf(out.kept, err.kept), durationMs, ...ending };
  } catch (error: unknown) {
    if (!(error instanceof SpawnerGone)) throw error;
    stdout.destroy();
    stderr.destroy();
    throw await interrupted(error, { pid, ...end });
  } finally {
    stop.release();
  }
}

/** The fault of a run whose spawner ended. What is left of its tree is killed first. */
export async function interrupted(cause: SpawnerGone, tree: KillOptions): Promise<Error> {
  await killTree(tree);
  const message =
    "the process that starts programs died while this one may have been running; what it did is not known";
  return fault(ErrorReason.INTERRUPTED, {}, { message, cause });
}

type Ending = RunOutcome extends infer O
  ? O extends RunOutcome
    ? Omit<O, Exclude<keyof RunResult, "leftBehind">>
    : never
  : never;

async function stopTree(pid: number, kind: StopKind, end: EndOptions): Promise<Ending> {
  const { survivors } = await killTree({ pid, ...end });
  return { kind, survivors, leftBehind: false };
}

async function endTree(
  { pid, contained }: { pid: number; contained: boolean },
  exit: Exit,
  closed: Promise<void>,
  end: EndOptions,
): Promise<Ending> {
  const open = !(await within(closed, DRAIN_MS));
  const found = open || (!contained && groupExists(pid)) ? (await killTree({ pid, ...end })).found : 0;
  const leftBehind = open || found > 0;
  if (exit.signal === null) return { kind: "exited", code: exit.code ?? 0, leftBehind };
  return { kind: "signaled", signal: exit.signal, number: constants.signals[exit.signal], leftBehind };
}

/** One stream of a program towards the result, and to its followers. */
interface Captured {
  kept: Capture;
  closed: Promise<void>;
  /** Reads to the end, whether or not the followers have room. */
  readOn(): void;
}

function capture(source: Readable, stream: OutputStream, spec: RunSpec): Captured {
  const kept = createCapture(spec.maxOutputBytes ?? DEFAULT_OUTPUT_BYTES);
  let mayPause = true;
  source.on("data", (chunk: Buffer) => {
    kept.push(chunk);
    const room = spec.onOutput?.(stream, chunk);
    if (room === undefined || !mayPause) return;
    source.pause();
    void room.finally(() => source.resume());
  });
  // A reset means that the other end is gone, which the exit says better.
  source.on("error", () => undefined);
  // A program that printed nothing may have ended before the message that it was started came.
  const closed = source.closed
    ? Promise.resolve()
    : new Promise<void>((resolve) => void source.once("close", () => resolve()));
  const readOn = (): void => {
    mayPause = false;
    source.resume();
  };
  return { kept, closed, readOn };
}

function textOf(out: Capture, err: Capture): Pick<RunResult, "stdout" | "stderr" | "truncated"> {
  const stdout = out.end();
  const stderr = err.end();
  return { stdout: stdout.text, stderr: stderr.text, truncated: stdout.truncated || stderr.truncated };
}

function watchStop(spec: RunSpec): { promise: Promise<StopKind>; release(): void } {
  const { promise, resolve } = Promise.withResolvers<StopKind>();
  const timer = setTimeout(() => resolve("timed_out"), spec.timeoutMs);
  const onAbort = (): void => resolve(stopKind(spec.signal));
  spec.signal.addEventListener("abort", onAbort, { once: true });
  return {
    promise,
    release() {
      clearTimeout(timer);
      spec.signal.removeEventListener("abort", onAbort);
    },
  };
}

/** What an aborted signal means: a reason named "TimeoutError" is the end of the time, anything else a cancel. */
export function stopKind(signal: AbortSignal): StopKind {
  const reason: unknown = signal.reason;
  return reason instanceof Error && reason.name === "TimeoutError" ? "timed_out" : "canceled";
}

/** Reads what is left in the pipes, then lets go of them, also where a process still holds the other end. */
async function drain({ stdout, stderr }: Started, closed: Promise<void>): Promise<void> {
  if (await within(closed, DRAIN_MS)) return;
  stdout.destroy();
  stderr.destroy();
}
