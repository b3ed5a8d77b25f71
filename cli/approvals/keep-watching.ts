import { setTimeout as sleep } from "node:timers/promises";

/** What is watched, and who hears of the connection. */
export interface Watching {
  /** Resolves when the other end answers, and what was missed is shown. */
  connect(): Promise<unknown>;
  /** Shows what happens; resolves or rejects when the stream ends. */
  watch(): Promise<void>;
  /** True for an error that trying again does not mend. */
  isFinal(error: unknown): boolean;
  /** There is no connection any more, with why; undefined where the other end closed it. Once for each time. */
  onLost(error: unknown): void;
  /** It is there again. */
  onBack(): void;
  /** Waits between two tries. Default: by the clock. */
  pause?(ms: number): Promise<unknown>;
}

/** The first wait and the longest one, in milliseconds; between them each is twice the one before. */
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 5000;

/**
 * Watches for ever: what ends is begun again, after waits that grow while the other end is away. Rejects with what is
 * final, and with any error of the first connection: whoever has just typed an address wants to know that it is wrong.
 */
export async function keepWatching(watching: Watching): Promise<never> {
  const { connect, watch, isFinal, onLost, onBack, pause = sleep } = watching;
  await connect();
  for (let failures = 0; ; ) {
    const error = await watch().then(
      () => undefined,
      (thrown: unknown) => ({ thrown }),
    );
    if (error !== undefined && isFinal(error.thrown)) throw error.thrown;
    onLost(error?.thrown);
    for (;;) {
      await pause(Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** failures) * (0.5 + Math.random() / 2));
      try {
        await connect();
        break;
      } catch (thrown: unknown) {
        if (isFinal(thrown)) throw thrown;
        failures += 1;
      }
    }
    failures = 0;
    onBack();
  }
}
