import type { CommandContext } from "../command-context.ts";
import { ExitCode } from "../exit-codes.ts";

/** Ctrl-C while a call runs. */
export interface Interrupts {
  /** Aborted by the first one. */
  readonly signal: AbortSignal;
  /** Leaves Ctrl-C to its default again. */
  close(): void;
}

/** The first Ctrl-C aborts the signal and says what happens now; the second ends the process at once. */
export function watchInterrupts(context: CommandContext, saying: string): Interrupts {
  const controller = new AbortController();
  const close = context.onInterrupt(() => {
    if (controller.signal.aborted) return context.exitNow(ExitCode.INTERRUPTED);
    context.stderr.write(`\nreeve: ${saying}\n`);
    controller.abort();
  });
  return { signal: controller.signal, close };
}
