/** Lets one after the other act. */
export interface Turns {
  /** Resolves with what gives the turn back, when it is the caller's turn or the signal is aborted. Never rejects. */
  take(signal: AbortSignal): Promise<() => void>;
}

/** Turns in the order in which they were asked for. */
export function createTurns(): Turns {
  let last: Promise<void> = Promise.resolve();
  return {
    async take(signal) {
      const before = last;
      const { promise, resolve } = Promise.withResolvers<void>();
      last = before.then(() => promise);
      await Promise.race([before, aborted(signal)]);
      return resolve;
    },
  };
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
