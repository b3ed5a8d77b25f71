/** A bounded number of places that calls run in, given out in the order they were asked for. */
export interface Slots {
  /** Takes a place where one is free and nobody waits. False: use `wait`. */
  tryTake(): boolean;
  /** Resolves with true when a place was taken, with false when the signal was aborted before that. */
  wait(signal: AbortSignal): Promise<boolean>;
  /** Gives a place back. */
  release(): void;
}

/** Makes `count` places. */
export function createSlots(count: number): Slots {
  let free = count;
  // A Set keeps the order and lets one in the middle leave.
  const waiting = new Set<() => void>();
  return {
    tryTake() {
      if (free === 0 || waiting.size > 0) return false;
      free--;
      return true;
    },
    wait(signal) {
      if (signal.aborted) return Promise.resolve(false);
      return new Promise((resolve) => {
        const leave = () => {
          waiting.delete(turn);
          resolve(false);
        };
        const turn = () => {
          signal.removeEventListener("abort", leave);
          resolve(true);
        };
        waiting.add(turn);
        signal.addEventListener("abort", leave, { once: true });
      });
    },
    release() {
      const [next] = waiting;
      if (next === undefined) {
        free++;
      } else {
        waiting.delete(next);
        next();
      }
    },
  };
}
