import type { Transaction } from "kysely";
import { type Database, walSyncOf } from "./database.ts";
import { runDirectly } from "./direct.ts";
import { SYNC_LATER } from "./sync-later.ts";

/** Writers of one database that share commits, so that one sync to disk serves all who wait. */
export interface GroupCommit<T> {
  /**
   * Runs a job inside a transaction and resolves with its value after COMMIT: what resolved is on disk. Jobs run one
   * after another, in the order of the calls. A job that throws is rolled back alone and its promise rejects with what
   * it threw; its neighbours may be run a second time for that, so a job may change nothing but the database. When the
   * commit fails (disk full, I/O error) every job of the batch rejects and none has happened. Inside a job use `trx` for
   * everything: awaiting another `write`, or writing through the database itself, waits for the job's own end.
   */
  write<R>(job: (trx: Transaction<T>) => Promise<R>): Promise<R>;
  /**
   * Like write, but may resolve after COMMIT and before the sync that follows at once: the change survives a crash of
   * the process, and a power cut in the next few milliseconds may take it. For a state whose loss leaves a true one.
   */
  writeThenSync<R>(job: (trx: Transaction<T>) => Promise<R>): Promise<R>;
  /**
   * Like write, for a state that nobody needs to wait for: rides along with the next batch, in order, or is written 10
   * ms later. What a crash takes with it must be harmless.
   */
  writeLazily(job: (trx: Transaction<T>) => Promise<unknown>): void;
  /** Refuses new jobs and resolves when all earlier ones are settled. Leaves the database open. */
  close(): Promise<void>;
}

/** What can be chosen. */
export interface GroupCommitOptions {
  /** Hears why a lazy job failed. Default: a process warning. */
  onLazyError?: (error: Error) => void;
}

/** Jobs in one transaction at most; bounds how long a batch holds the writer. */
const MAX_BATCH = 512;

/** How long a lazy job waits for company, in milliseconds. */
const LAZY_DELAY_MS = 10;

/** Tells the caller of a job how it ended. */
type Settle = () => void;

interface Job<T> {
  /** Whether whoever waits for the job waits for the disk. */
  waitsForSync: boolean;
  run(trx: Transaction<T>): Promise<Settle>;
  fail(error: unknown): void;
}

/**
 * Gathers the jobs of one turn of the event loop into one transaction, without a savepoint for each: two statements a
 * job would cost more than the rare batch with a failing job, which is rolled back and run again job by job.
 */
export function createGroupCommit<T>(db: Database<T>, options: GroupCommitOptions = {}): GroupCommit<T> {
  const onLazyError = options.onLazyError ?? ((error: Error) => process.emitWarning(error));
  const queue = createQueue<T>((jobs) => commit(db, jobs));
  const write = <R>(job: (trx: Transaction<T>) => Promise<R>, waitsForSync: boolean) =>
    new Promise<R>((resolve, reject) => {
      const run = async (trx: Transaction<T>) => {
        const value = await job(trx);
        return () => resolve(value);
      };
      queue.push({ run, fail: reject, waitsForSync }, "now");
    });
  return {
    write: (job) => write(job, true),
    writeThenSync: (job) => write(job, false),
    writeLazily(job) {
      const run = async (trx: Transaction<T>) => {
        await job(trx);
        return () => {};
      };
      // In a turn of its own, so that a listener that throws cannot stop the queue.
      const fail = (e: unknown) => queueMicrotask(() => onLazyError(e instanceof Error ? e : new Error(String(e))));
      queue.push({ run, fail, waitsForSync: false }, "soon");
    },
    close: () => queue.close(),
  };
}

interface Queue<T> {
  push(job: Job<T>, when: "now" | "soon"): void;
  close(): Promise<void>;
}

function createQueue<T>(commitBatch: (jobs: readonly Job<T>[]) => Promise<Settle[]>): Queue<T> {
  const jobs: Job<T>[] = [];
  let draining: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let closed = false;

  function startDraining(): void {
    draining ??= drain();
  }

  async function drain(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    while (jobs.length > 0) {
      // A turn of the event loop lets everybody who was just answered, or has just arrived, join the batch.
      await new Promise(setImmediate);
      for (const settle of await commitBatch(jobs.splice(0, MAX_BATCH))) settle();
    }
    draining = undefined;
  }

  return {
    push(job, when) {
      if (closed) return job.fail(new Error("the group commit is closed"));
      jobs.push(job);
      if (when === "now") startDraining();
      else if (!draining) timer ??= setTimeout(startDraining, LAZY_DELAY_MS);
    },
    async close() {
      closed = true;
      await (draining ?? drain());
    },
  };
}

/** Runs the jobs in one transaction, or one by one where one of them fails. Each job's outcome is in the result. */
async function commit<T>(db: Database<T>, jobs: readonly Job<T>[]): Promise<Settle[]> {
  const settles = await commitTogether(db, jobs).catch((e: unknown) => {
    const [only, another] = jobs;
    return only && !another ? [() => only.fail(e)] : undefined;
  });
  if (settles === undefined) return commitEach(db, jobs);
  try {
    await sync(db, jobs);
    return settles;
  } catch (e: unknown) {
    return jobs.map((job) => () => job.fail(e));
  }
}

async function commitTogether<T>(db: Database<T>, jobs: readonly Job<T>[]): Promise<Settle[]> {
  return db.transaction().execute(async (trx) => {
    if (walSyncOf(db) !== undefined || !jobs.some(isWaitedFor)) await trx.executeQuery(SYNC_LATER);
    runDirectly(db, trx);
    const settles: Settle[] = [];
    for (const job of jobs) settles.push(await job.run(trx));
    return settles;
  });
}

async function commitEach<T>(db: Database<T>, jobs: readonly Job<T>[]): Promise<Settle[]> {
  const settles: Settle[] = [];
  for (const job of jobs) settles.push(...(await commit(db, [job])));
  return settles;
}

/** Never part of what is tried again: the commit has gone through by now. */
async function sync<T>(db: Database<T>, jobs: readonly Job<T>[]): Promise<void> {
  const wal = walSyncOf(db);
  if (wal === undefined || !jobs.some(isWaitedFor)) return;
  // A job that is alone has nobody who would use the time.
  if (jobs.length === 1) wal.syncInPlace();
  else await wal.sync();
}

function isWaitedFor<T>(job: Job<T>): boolean {
  return job.waitsForSync;
}
