import { createInterface } from "node:readline";
import type { World } from "../world.ts";

/** True where a person can be asked: input and standard error are a terminal. */
export function canAsk({ stdin, stderr }: Pick<World, "stdin" | "stderr">): boolean {
  return stdin.isTTY === true && stderr.isTTY === true;
}

/**
 * Asks on standard error and resolves with the line that is typed; undefined at the end of the input and when the
 * signal is aborted. The terminal's own line editing is used, so that Ctrl-C stays a signal.
 */
export function askLine(
  world: Pick<World, "stdin" | "stderr">,
  question: string,
  signal?: AbortSignal,
): Promise<string | undefined> {
  if (signal?.aborted) return Promise.resolve(undefined);
  world.stderr.write(question);
  const lines = createInterface({ input: world.stdin, terminal: false });
  return new Promise((resolve) => {
    const end = (line: string | undefined) => {
      signal?.removeEventListener("abort", stop);
      lines.removeAllListeners("close");
      lines.close();
      // An open standard input would keep the process alive.
      world.stdin.pause();
      if (line === undefined) world.stderr.write("\n");
      resolve(line);
    };
    const stop = () => end(undefined);
    signal?.addEventListener("abort", stop, { once: true });
    lines.once("line", end);
    lines.once("close", stop);
  });
}
