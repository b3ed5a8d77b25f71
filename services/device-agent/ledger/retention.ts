import { MIN_RETENTION_MS } from "../config.ts";
import type { Ledger } from "./ledger.ts";

/** How often old calls are forgotten, in milliseconds. */
const INTERVAL_MS = 60 * 60_000;

/**
 * Forgets calls that ended longer ago than this, now and every hour. Never sooner than MIN_RETENTION_MS: a used grant
 * must be known for as long as it could be shown again.
 */
export function keepRetention(
  ledger: Pick<Ledger, "prune">,
  retentionMs: number,
  now: () => number,
  onError: (error: unknown) => void,
): { stop(): void } {
  const keepMs = Math.max(retentionMs, MIN_RETENTION_MS);
  let stopped = false;
  const prune = (): void => {
    ledger.prune(now() - keepMs).catch((error: unknown) => {
      // The ledger may close under a prune, which is no news.
      if (!stopped) onError(error);
    });
  };
  prune();
  const timer = setInterval(prune, INTERVAL_MS);
  timer.unref();
  return {
    stop() {
      stopped = true;
      clearInterval(timer);
    },
  };
}
