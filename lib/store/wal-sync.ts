import { type FileHandle, open } from "node:fs/promises";

/** Brings what was committed to the disk. */
export interface WalSync {
  /** Resolves when everything that was committed before the call is on disk. Calls that come during a sync share the next. */
  sync(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Syncs a database's write-ahead log off the event loop. SQLite's own synchronous=FULL does the same fsync inside
 * COMMIT, where it stops the whole process for 0.1 to 5 ms; with synchronous=NORMAL and this sync before anybody is
 * told, as much survives a power cut, the process goes on working meanwhile, and what it does meanwhile shares the next
 * sync. A sync that fails is final: what is on disk is not known any more (see fsyncgate), so every later one rejects.
 *
 * @param walPath the log's path: the database's with "-wal". It exists from the first commit until the last connection
 *   closes, and is never replaced in between.
 */
export function createWalSync(walPath: string): WalSync {
  let file: FileHandle | undefined;
  let running: Promise<void> | undefined;
  let next: Promise<void> | undefined;
  let failure: Error | undefined;

  const syncOnce = async (): Promise<void> => {
    if (failure !== undefined) throw failure;
    try {
      // Closing a descriptor drops a process's locks on a file; SQLite keeps none on its log, so one of our own is safe.
      file ??= await open(walPath, "r");
      await file.datasync();
    } catch (cause: unknown) {
      failure = new Error(`${walPath} cannot be synced; what is on disk is not known`, { cause });
      throw failure;
    }
  };
  const start = (): Promise<void> => {
    running = syncOnce().finally(() => {
      running = undefined;
    });
    return running;
  };

  return {
    sync() {
      if (running === undefined) return start();
      // The running one may have begun before the caller's commit: only the one after it counts.
      next ??= running
        .catch(() => undefined)
        .then(() => {
          next = undefined;
          return start();
        });
      return next;
    },
    async close() {
      await running?.catch(() => undefined);
      await file?.close();
      file = undefined;
    },
  };
}
