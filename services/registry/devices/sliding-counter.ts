/** Counts events by key over a sliding window: one may be an accident, several in a row are not. */
export interface SlidingCounter {
  /** Counts one more. True where that reaches the limit. */
  add(key: string): boolean;
}

export interface SlidingCounterOptions {
  limit: number;
  /** How long each event counts, in milliseconds. */
  withinMs: number;
  /** Milliseconds, never set back. Default the process's own clock. */
  now?: () => number;
}

/** Counts in memory, for the lifetime of the process. */
export function createSlidingCounter(options: SlidingCounterOptions): SlidingCounter {
  const { limit, withinMs, now = () => performance.now() } = options;
  const times = new Map<string, number[]>();
  return {
    add(key) {
      const old = now() - withinMs;
      for (const [other, all] of times) if ((all.at(-1) ?? 0) <= old) times.delete(other);
      const counting = [...(times.get(key) ?? []).filter((time) => time > old), now()].slice(-limit);
      times.set(key, counting);
      return counting.length >= limit;
    },
  };
}
