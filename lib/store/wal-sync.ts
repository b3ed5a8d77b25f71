import { closeSync, fdatasync, fdatasyncSync, openSync } from "node:fs";
import { promisify } from "node:util";
import { createSharedRun } from "../async/shared-run.ts";

/** Brings what was committed to the disk. */
export interface WalSync {
  /**
   * Resolves when everything that was committed before the call is on disk, and lets the process go on meanwhile. Calls
   * that come during a sync share the next one.
   */
  sync(): Promise<void>;
  /** The same, at once, in the caller's own turn: for one who is alone, waking another thread costs more than the disk. */
  syncInPlace(): void;
  /** Syncs within 10 ms, unless another sync comes first. Its failure rejects the next that waits. */
  syncSoon(): void;
  close(): Promise<void>;
}

/** How long `syncSoon` waits for a sync that comes anyway, in milliseconds. */
const SOON_MS = 10;

const datasync = promisify(fdatasync);

/**
 * Syncs a database's write-ahead log. SQLite's own synchronous=FULL does the same fsync inside COMMIT, where it stops
 * the whole process for 0.1 to 5 ms each time; with synchronous=NORMAL and this sync before the answer, as much
 * survives a power cut, the process goes on working meanwhile, and what it does meanwhile shares the next sync. A sync
 * that fails is final: what is on disk is not known any more (see "fsyncgate", 2018), so every later one fails too.
 *
 * @param walPath the log's path: the database's with "-wal". It exists from the first commit until the last connection
 *   closes, and is never replaced in between.
 */
export function createWalSync(walPath: string): WalSync {
  let descriptor: number | undefined;
  let soon: NodeJS.Timeout | undefined;
  let failure: Error | undefined;

  /** Of our own: closing a descriptor drops a process's locks on the file, but SQLite keeps none on its log. */
  const opened = (): number => {
    clearTimeout(soon);
    soon = undefined;
    if (failure !== undefined) throw failure;
    descriptor ??= openSync(walPath, "r");
    return descriptor;
  };
  const failed = (cause: unknown): Error => {
    failure ??= new Error(`${walPath} cannot be synced; what is on disk is not known`, { cause });
    return failure;
  };
  const syncAside = async (): Promise<void> => {
    try {
      await datasync(opened());
    } catch (cause: unknown) {
      throw failed(cause);
    }
  };
  // The running one may have begun before a caller's commit: only the one after it counts.
  const { run: sync, quiet } = createSharedRun(syncAside);

  return {
    sync,
    syncInPlace() {
      try {
        fdatasyncSync(opened());
      } catch (cause: unknown) {
        throw failed(cause);
      }
    },
    syncSoon() {
      soon ??= setTimeout(() => void sync().catch(() => undefined), SOON_MS);
    },
    async close() {
      await quiet();
      if (soon !== undefined && failure === undefined) fdatasyncSync(opened());
      if (descriptor !== undefined) closeSync(descriptor);
      descriptor = undefined;
    },
  };
}
