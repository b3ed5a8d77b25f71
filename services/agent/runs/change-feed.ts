import { every } from "../../../lib/async/every.ts";
import type { RunStore } from "./store.ts";

/** Notifies watchers that a run has changed, on whichever replica that was. */
export interface ChangeFeed {
  /** A run has changed here. Never waits. */
  notify(runId: string): void;
  /** Resolves when the run changes next, or when the signal aborts. Ask before reading what is stored. */
  next(runId: string, signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

/** How often to look for what other replicas changed, in milliseconds. */
const LOOK_MS = 250;

/**
 * A feed over the database, which is the only truth: a notification only makes a watcher read it.
 *
 * @param shared whether other replicas write to the database; only then is it looked at, for the runs that are watched.
 */
export function createChangeFeed(
  store: Pick<RunStore, "lastSequences">,
  { shared, onError }: { shared: boolean; onError(error: unknown): void },
): ChangeFeed {
  const watchers = new Map<string, Set<() => void>>();
  let seen: ReadonlyMap<string, number> = new Map();
  const notify = (runId: string): void => {
    for (const wake of watchers.get(runId) ?? []) wake();
  };
  const look = async (): Promise<void> => {
    const now = await store.lastSequences([...watchers.keys()]);
    const before = seen;
    seen = now;
    for (const [runId, sequence] of now) if (before.get(runId) !== sequence) notify(runId);
  };
  const looking = shared ? every(LOOK_MS, look, onError) : undefined;
  return {
    notify,
    next: (runId, signal) =>
      new Promise((resolve) => {
        const waiting = watchers.get(runId) ?? new Set();
        watchers.set(runId, waiting);
        const wake = (): void => {
          waiting.delete(wake);
          if (waiting.size === 0 && watchers.get(runId) === waiting) watchers.delete(runId);
          signal.removeEventListener("abort", wake);
          resolve();
        };
        waiting.add(wake);
        if (signal.aborted) wake();
        else signal.addEventListener("abort", wake);
      }),
    close: async () => looking?.stop(),
  };
}
