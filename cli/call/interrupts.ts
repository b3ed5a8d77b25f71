import { ExitCode } from "../exit-codes.ts";
import type { World } from "../world.ts";

/** Ctrl-C while a call runs. */
export interface Interrupts {
  /** Aborted by the first one. */
  readonly signal: AbortSignal;
  /** Leaves Ctrl-C to its default again. */
  close(): void;
}

/** The first Ctrl-C aborts the signal and says what happens now; the second ends the process at once. */
export function watchInterrupts(world: World, saying: string): Interrupts {
  const controller = new AbortController();
  const close = world.onInterrupt(() => {
    if (controller.signal.aborted) return world.exitNow(ExitCode.INTERRUPTED);
    world.stderr.write(`\nreeve: ${saying}\n`);
    controller.abort();
  });
  return { signal: controller.signal, close };
}
