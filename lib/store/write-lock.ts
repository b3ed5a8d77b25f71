/** Gives the one writer of a database to one holder after the other, in the order they asked. */
export interface WriteLock {
  /** Resolves when the caller holds the lock. Rejects when it did not come within the limit. */
  acquire(): Promise<void>;
  release(): void;
}

/** How long a writer waits for the one before it, in milliseconds. */
const WAIT_LIMIT_MS = 30_000;

/** A lock for one process. Waiting is bounded: a holder that waits for itself becomes an error that says so. */
export function createWriteLock(waitLimitMs = WAIT_LIMIT_MS): WriteLock {
  const waiting: (() => void)[] = [];
  let held = false;
  return {
    acquire() {
      if (!held) {
        held = true;
        return Promise.resolve();
      }
      return waitForTurn(waiting, waitLimitMs);
    },
    release() {
      const next = waiting.shift();
      if (next) next();
      else held = false;
    },
  };
}

function waitForTurn(waiting: (() => void)[], limitMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      waiting.splice(waiting.indexOf(turn), 1);
      reject(new Error(`waited ${limitMs} ms to write: inside a transaction use its own handle, not the database's`));
    }, limitMs);
    const turn = () => {
      clearTimeout(timer);
      resolve();
    };
    waiting.push(turn);
  });
}
