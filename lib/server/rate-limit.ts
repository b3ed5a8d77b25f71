/** Bounds how often something may happen for each key, such as a remote address. */
export interface RateLimit {
  /** How long the key has to wait, in milliseconds; 0 where it may try now. */
  waitMs(key: string): number;
  /** It happened once more. */
  spend(key: string): void;
}

/** How often is too often. */
export interface RateLimitOptions {
  /** So many at once. */
  burst: number;
  /** And one more in so many milliseconds. */
  everyMs: number;
  /** Keys that are remembered; with more, those that are not share what one has. Default 10000. */
  maxKeys?: number;
  /** Milliseconds, never set back. Default the process's own clock. */
  now?: () => number;
}

/** What keys share that are too many to be remembered. */
const OTHERS = "others";

/** A token bucket for each key, kept as the moment when it is full again. A key that is full again is forgotten. */
export function createRateLimit(options: RateLimitOptions): RateLimit {
  const { burst, everyMs, maxKeys = 10_000, now = () => performance.now() } = options;
  const fullAt = new Map<string, number>();
  const keyOf = (key: string): string => (fullAt.has(key) || fullAt.size < maxKeys ? key : OTHERS);
  const forgetFull = (at: number): void => {
    for (const [key, full] of fullAt) if (full <= at) fullAt.delete(key);
  };
  return {
    waitMs(key) {
      const emptyFor = (fullAt.get(keyOf(key)) ?? 0) - now() - (burst - 1) * everyMs;
      return Math.max(0, Math.ceil(emptyFor));
    },
    spend(key) {
      const at = now();
      if (fullAt.size >= maxKeys) forgetFull(at);
      const counted = keyOf(key);
      fullAt.set(counted, Math.max(at, fullAt.get(counted) ?? 0) + everyMs);
    },
  };
}
