import { createInterface, type Interface } from "node:readline";
import { Writable } from "node:stream";
import type { CommandContext } from "../command-context.ts";

/** True where a person can be asked: input and standard error are a terminal. */
export function canAsk({ stdin, stderr }: Pick<CommandContext, "stdin" | "stderr">): boolean {
  return stdin.isTTY === true && stderr.isTTY === true;
}

/**
 * Asks on standard error and resolves with the line that is typed; undefined at the end of the input and when the
 * signal is aborted. The terminal's own line editing is used, so that Ctrl-C stays a signal.
 */
export function askLine(
  context: Pick<CommandContext, "stdin" | "stderr">,
  question: string,
  signal?: AbortSignal,
): Promise<string | undefined> {
  if (signal?.aborted) return Promise.resolve(undefined);
  context.stderr.write(question);
  const lines = createInterface({ input: context.stdin, terminal: false });
  return oneLine(lines, context.stdin, signal, (line) => {
    if (line === undefined) context.stderr.write("\n");
  });
}

/**
 * Asks for a secret on standard error: what is typed is not shown. Resolves with the line; undefined at the end of the
 * input, when the signal is aborted, and on Ctrl-C, which is passed on to the command.
 */
export function askHidden(
  context: Pick<CommandContext, "stdin" | "stderr" | "interrupt">,
  question: string,
  signal?: AbortSignal,
): Promise<string | undefined> {
  if (signal?.aborted) return Promise.resolve(undefined);
  // As a terminal's, so that the terminal stops its echo; what readline would show in its place goes nowhere.
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: context.stdin, output: nowhere, terminal: true, historySize: 0 });
  // Only now: what is typed before the echo is off would be shown.
  context.stderr.write(question);
  lines.once("SIGINT", () => {
    lines.close();
    context.interrupt();
  });
  // What ended the line was not shown either.
  return oneLine(lines, context.stdin, signal, () => context.stderr.write("\n"));
}

/** The next line; undefined when the input ends, `lines` is closed or the signal is aborted. Closes `lines` in any case. */
function oneLine(
  lines: Interface,
  stdin: CommandContext["stdin"],
  signal: AbortSignal | undefined,
  onEnd: (line: string | undefined) => void,
): Promise<string | undefined> {
  return new Promise((resolve) => {
    const end = (line: string | undefined) => {
      signal?.removeEventListener("abort", stop);
      lines.removeAllListeners("close");
      lines.close();
      // An open standard input would keep the process alive.
      stdin.pause();
      onEnd(line);
      resolve(line);
    };
    const stop = () => end(undefined);
    signal?.addEventListener("abort", stop, { once: true });
    lines.once("line", end);
    lines.once("close", stop);
  });
}
