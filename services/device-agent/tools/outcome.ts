import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { cleanOutput } from "../../../lib/sanitize/sanitize.ts";
import type { RunOutcome, RunSpec } from "../executor/executor.ts";
import { stopKind } from "../executor/follow.ts";
import type { ToolContext } from "./tool.ts";

/** A program that came to its own end. */
export interface Finished {
  /** The file that was run: the absolute path that the program's name stood for. */
  program: string;
  stdout: string;
  stderr: string;
  /** 128 plus the signal's number where a signal ended it, as shells do. */
  exitCode: number;
  truncated: boolean;
  durationMs: number;
}

/** How much of a killed or failed program's output goes into the error's message, in characters. */
const MESSAGE_OUTPUT = 2048;

/**
 * Runs a program for a tool, with the call's signal and live output, and within the call's time. Faults: those of the
 * executor; TIMED_OUT{timeout_ms} and CANCELED{by} with the end of what it had printed in the message.
 */
export async function runProgram(
  context: ToolContext,
  spec: Omit<RunSpec, "signal" | "timeoutMs" | "onOutput"> & { timeoutMs?: number; live?: boolean },
): Promise<Finished> {
  const { timeoutMs: requestedMs, live = true, ...rest } = spec;
  const timeoutMs = requestedMs ? Math.min(requestedMs, context.timeoutMs) : context.timeoutMs;
  const onOutput = live ? context.emit.bind(context) : undefined;
  return finished(await context.executor.run({ ...rest, signal: context.signal, timeoutMs, onOutput }), timeoutMs);
}

function finished(outcome: RunOutcome, timeoutMs: number): Finished {
  const { program, stdout, stderr, truncated, durationMs } = outcome;
  switch (outcome.kind) {
    case "exited":
      return { program, stdout, stderr, truncated, durationMs, exitCode: outcome.code };
    case "signaled":
      return { program, stdout, stderr, truncated, durationMs, exitCode: 128 + outcome.number };
    case "timed_out":
      throw fault(
        ErrorReason.TIMED_OUT,
        { timeout_ms: String(timeoutMs) },
        {
          message: `ran longer than ${timeoutMs} ms and was killed${remains(outcome)}`,
        },
      );
    case "canceled":
      throw fault(ErrorReason.CANCELED, { by: "caller" }, { message: `was canceled and killed${remains(outcome)}` });
  }
}

function remains(outcome: RunOutcome & { survivors: number }): string {
  const left =
    outcome.survivors === 0 ? " with all its children" : `; ${outcome.survivors} of its processes would not die`;
  const words = lastWords(outcome);
  return words === "" ? left : `${left}. It had printed:\n${words}`;
}

/**
 * The fault TOOL_FAILED for a program that ran and failed, in the program's own words, cleaned.
 * Metadata: program, exit_code.
 */
export function programFailed(program: string, run: Finished): Error {
  const words = lastWords(run) || `${program} ended with exit code ${run.exitCode}`;
  return fault(ErrorReason.TOOL_FAILED, { program, exit_code: String(run.exitCode) }, { message: words });
}

function lastWords({ stdout, stderr }: { stdout: string; stderr: string }): string {
  const said = stderr.trim() === "" ? stdout : stderr;
  return cleanOutput(said).text.trim().slice(-MESSAGE_OUTPUT);
}

/** Ends a tool that runs no program when its call is canceled or its time is up. Faults: CANCELED, TIMED_OUT. */
export function throwIfAborted({ signal, timeoutMs }: Pick<ToolContext, "signal" | "timeoutMs">): void {
  if (!signal.aborted) return;
  if (stopKind(signal) === "canceled") throw fault(ErrorReason.CANCELED, { by: "caller" }, { message: "was canceled" });
  throw fault(
    ErrorReason.TIMED_OUT,
    { timeout_ms: String(timeoutMs) },
    { message: `took longer than ${timeoutMs} ms` },
  );
}
