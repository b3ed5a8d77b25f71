import type { Logger } from "../log/log.ts";

/** Log lines about unknown callers, in each window. */
const MOST = 20;
const WINDOW_MS = 10_000;

/** Says whether a request of a caller without a principal gets a line of its own. */
export interface StrangerLog {
  /** False: it is counted, and reported in one line together with others. */
  admit(): boolean;
}

/**
 * Bounds what callers without a token or certificate can write to the log: so many lines in each window, and at its end one
 * with the number of the others. The metrics count every request.
 *
 * @param options.most lines in a window. Default 20.
 * @param options.windowMs Default 10 s.
 */
export function createStrangerLog(logger: Logger, options: { most?: number; windowMs?: number } = {}): StrangerLog {
  const { most = MOST, windowMs = WINDOW_MS } = options;
  let opened = Number.NEGATIVE_INFINITY;
  let lines = 0;
  let skipped = 0;
  const close = (): void => {
    logger.info({ skipped, window_ms: windowMs }, "requests without a principal not logged");
    skipped = 0;
    opened = Number.NEGATIVE_INFINITY;
  };
  return {
    admit() {
      const now = performance.now();
      if (skipped === 0 && now - opened >= windowMs) {
        opened = now;
        lines = 0;
      }
      if (lines < most) {
        lines++;
        return true;
      }
      if (skipped++ === 0) setTimeout(close, Math.max(0, opened + windowMs - now)).unref();
      return false;
    },
  };
}
