/** Counts what may be an accident once, and is none when it comes again and again. */
export interface Suspicions {
  /** One more about this device. True where that makes too many. */
  add(deviceId: string): boolean;
}

/** What is too many. */
export interface SuspicionOptions {
  /** So many are too many. */
  limit: number;
  /** So long each counts, in milliseconds. */
  withinMs: number;
  /** Milliseconds, never set back. Default the process's own clock. */
  now?: () => number;
}

/** None yet. They are this process's own, and forgotten with it. */
export function createSuspicions({ limit, withinMs, now = () => performance.now() }: SuspicionOptions): Suspicions {
  const times = new Map<string, number[]>();
  return {
    add(deviceId) {
      const old = now() - withinMs;
      for (const [id, all] of times) if ((all.at(-1) ?? 0) <= old) times.delete(id);
      const counting = [...(times.get(deviceId) ?? []).filter((time) => time > old), now()].slice(-limit);
      times.set(deviceId, counting);
      return counting.length >= limit;
    },
  };
}
