import { sql, type Transaction } from "kysely";
import { beginTransaction } from "./begin.ts";
import { type Database, sqliteWriterOf } from "./database.ts";
import { asksForRetry, CommitUnknown, DatabaseUnreachable } from "./postgres-errors.ts";
import { stepsOf, type WaitingRow } from "./rows.ts";
import { SYNC_LATER } from "./sync-later.ts";

/** Resolves or rejects the promise of a job. */
export type Report = () => void;

/** What one caller wants to have done in a transaction. */
export interface Job<T> {
  /** Whether the promise waits for the disk. */
  waitsForSync: boolean;
  /** Whether it waits for another job, to share a batch with it. */
  ridesAlong: boolean;
  run(trx: Transaction<T>): Promise<Report>;
  fail(error: unknown): void;
  /** What `run` writes, where that is a row that may be written together with others of its kind. */
  waiting?: WaitingRow<T> & { reportOf(result: unknown): Report };
}

/** How the transaction of a batch ended. All but "committed" have changed nothing, or CommitUnknown says that they may. */
export type BatchEnd =
  | { kind: "committed"; reports: Report[] }
  /** One of the jobs, or what it did, kept the batch from being committed: without it the others may go through. */
  | { kind: "job_failed"; error: unknown }
  /** No job is to blame. */
  | { kind: "failed"; error: unknown };

/** Runs batches of jobs. */
export interface Batches<T> {
  /**
   * Runs jobs one after another in one transaction, on PostgreSQL rows of a kind with one statement. Never rejects.
   *
   * @param apart each job has a savepoint, so that one that fails is rolled back alone; its report then rejects with its error.
   *   Costs two statements a job. Default false.
   */
  run(jobs: readonly Job<T>[], apart?: boolean): Promise<BatchEnd>;
  /** Brings a committed batch to the disk, where its jobs wait for that and COMMIT has not done it. */
  sync(jobs: readonly Job<T>[]): Promise<void>;
}

/** How often a batch is run at most where the server asks for another try. */
const MAX_TRIES = 5;

/** Runs batches on a database; on PostgreSQL under the lock, when it has a name. */
export function createBatches<T>(db: Database<T>, lock: string | undefined): Batches<T> {
  const sqlite = sqliteWriterOf(db);

  const transact = <R>(jobs: readonly Job<T>[], work: (trx: Transaction<T>) => Promise<R>): Promise<R> => {
    if (sqlite !== undefined) return sqlite.transact(work);
    return beginTransaction(db).execute(async (trx) => {
      if (!jobs.some(isWaitedFor)) await trx.executeQuery(SYNC_LATER);
      if (lock !== undefined) await takeLock(trx, lock);
      return work(trx);
    });
  };

  /** Resolves with undefined where another try may help. */
  async function attempt(jobs: readonly Job<T>[], apart: boolean, triesLeft: number): Promise<BatchEnd | undefined> {
    let begun = false;
    try {
      const reports = await transact(jobs, (trx) => {
        begun = true;
        if (apart) return runInOrder(trx, jobs, runApart);
        return sqlite === undefined ? runInSteps(trx, jobs) : runInOrder(trx, jobs, runTogether);
      });
      return { kind: "committed", reports };
    } catch (error: unknown) {
      if (error instanceof CommitUnknown) return { kind: "failed", error };
      // Once: the connection may have been dead since a restart of the server, which is back by now or is not.
      if (error instanceof DatabaseUnreachable) return triesLeft === MAX_TRIES ? undefined : { kind: "failed", error };
      if (asksForRetry(error) && triesLeft > 1) return undefined;
      return { kind: begun ? "job_failed" : "failed", error };
    }
  }

  return {
    async run(jobs, apart = false) {
      for (let triesLeft = MAX_TRIES; ; triesLeft--) {
        const end = await attempt(jobs, apart, triesLeft);
        if (end !== undefined) return end;
      }
    },
    async sync(jobs) {
      if (sqlite?.wal === undefined) return;
      if (!jobs.some(isWaitedFor)) sqlite.wal.syncSoon();
      // While a single caller waits, nothing else has work to do.
      else if (isAlone(jobs)) sqlite.wal.syncInPlace();
      else await sqlite.wal.sync();
    },
  };
}

/** Whether those that are waited for are one job, or one and what rides along with it. */
function isAlone<T>(jobs: readonly Job<T>[]): boolean {
  const waiting = jobs.filter(isWaitedFor);
  return waiting.length === 1 || (waiting.length === 2 && waiting.some(({ ridesAlong }) => ridesAlong));
}

/** Until the transaction ends. The number is of the schema too, since a server may hold several installations. */
async function takeLock<T>(trx: Transaction<T>, name: string): Promise<void> {
  const key = sql`hashtextextended(coalesce(current_schema(), '') || '/' || ${name}, 0)`;
  await sql`select pg_advisory_xact_lock(${key})`.execute(trx);
}

async function runInOrder<T>(
  trx: Transaction<T>,
  jobs: readonly Job<T>[],
  run: (trx: Transaction<T>, job: Job<T>) => Promise<Report>,
): Promise<Report[]> {
  const reports: Report[] = [];
  for (const job of jobs) reports.push(await run(trx, job));
  return reports;
}

async function runInSteps<T>(trx: Transaction<T>, jobs: readonly Job<T>[]): Promise<Report[]> {
  const reports: Report[] = [];
  for (const step of stepsOf<T, Job<T>>(jobs)) reports.push(...(await runStep(trx, step)));
  return reports;
}

async function runStep<T>(trx: Transaction<T>, jobs: readonly Job<T>[]): Promise<Report[]> {
  const rows = jobs.flatMap(({ waiting }) => waiting ?? []);
  const [first] = rows;
  if (first === undefined || rows.length === 1) return runInOrder(trx, jobs, runTogether);
  const written = rows.map(({ row }) => row);
  const results = await first.kind.many(trx, written);
  if (results.length !== rows.length) throw new Error(`${rows.length} rows had ${results.length} results`);
  return rows.map(({ reportOf }, index) => reportOf(results[index]));
}

const runTogether = <T>(trx: Transaction<T>, job: Job<T>): Promise<Report> => job.run(trx);

async function runApart<T>(trx: Transaction<T>, job: Job<T>): Promise<Report> {
  await sql`savepoint job`.execute(trx);
  try {
    const report = await job.run(trx);
    await sql`release savepoint job`.execute(trx);
    return report;
  } catch (error: unknown) {
    // These are about the whole transaction.
    if (error instanceof DatabaseUnreachable || asksForRetry(error)) throw error;
    await sql`rollback to savepoint job`.execute(trx);
    await sql`release savepoint job`.execute(trx);
    return () => job.fail(error);
  }
}

function isWaitedFor<T>(job: Job<T>): boolean {
  return job.waitsForSync;
}
