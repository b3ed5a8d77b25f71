import type { Transaction } from "kysely";
import { type Batches, createBatches, type Job, type Report } from "./batch.ts";
import type { Database } from "./database.ts";
import { createJobQueue } from "./job-queue.ts";
import type { RowKind } from "./rows.ts";

/**
 * Writers of one database that share commits, so that one sync to disk serves all who wait. On PostgreSQL other
 * processes write at the same time, and a job sees what they have committed up to each of its statements: a job that
 * reads before it writes needs a group commit with a `lock`, a condition in its update, or FOR UPDATE.
 */
export interface GroupCommit<T> {
  /**
   * Runs a job inside a transaction and resolves with its value after COMMIT: what resolved is on disk. Jobs run one
   * after another, in the order of the calls. A job that throws is rolled back alone and its promise rejects with what
   * it threw; its neighbors may be run again for that, so a job may change nothing but the database. When the
   * commit fails (disk full, I/O error) every job of the batch rejects and none has happened. Inside a job use `trx` for
   * everything: awaiting another `write`, or writing through the database itself, waits for the job's own end.
   *
   * On PostgreSQL a batch is run again where the server asks for that (serialization failure, deadlock), and once where
   * the connection was lost before COMMIT. Where that does not help, all its jobs reject with DatabaseUnreachable, and
   * none has happened. CommitUnknown means that the connection was lost during COMMIT: all jobs of the batch have
   * happened, or none has. Nothing is tried again then, and callers treat it as a failure. A job must not catch the error
   * of a statement and go on, since PostgreSQL has ended its transaction by then: it rejects nevertheless.
   */
  write<R>(job: (trx: Transaction<T>) => Promise<R>): Promise<R>;
  /**
   * Like write, but may resolve after COMMIT and before the sync that follows at once: the change survives a crash of
   * the process, and a power cut in the next few milliseconds may take it. For a state whose loss leaves a true one.
   */
  writeThenSync<R>(job: (trx: Transaction<T>) => Promise<R>): Promise<R>;
  /**
   * Like write, for a state that no caller waits for: rides along with the next batch, in order, or is written 50
   * ms later. What a crash takes with it must be harmless, and so is dropped after `close`.
   */
  writeLazily(job: (trx: Transaction<T>) => Promise<unknown>): void;
  /**
   * Like write, for a row: on PostgreSQL a batch writes those of a kind with one statement, whose cost is its round trip.
   * They go before and after jobs as they came, and among each other as their kinds say.
   */
  writeRow<Row, R>(kind: RowKind<T, Row, R>, row: Row): Promise<R>;
  /**
   * Like writeRow, for a row that another write follows in any case: rides along with the next batch, in order, so that both
   * share one commit. Where none comes it is written as soon as `until` is settled, and after 50 ms at the latest.
   */
  writeRowAlong<Row, R>(kind: RowKind<T, Row, R>, row: Row, until: Promise<unknown>): Promise<R>;
  /** Like writeLazily, for a row. */
  writeRowLazily<Row>(kind: RowKind<T, Row, unknown>, row: Row): void;
  /** Refuses new jobs and resolves when all earlier ones are done. Leaves the database open. */
  close(): Promise<void>;
}

/** A database that several services of one process have together, each with its own tables. Its owner closes both. */
export interface SharedDatabase<T> {
  db: Database<T>;
  /** Of all of them, so that what they write at the same time shares a commit. */
  commits: GroupCommit<T>;
}

/** What can be chosen. */
export interface GroupCommitOptions {
  /** Receives why a lazy job failed. Default: a process warning. */
  onLazyError?: (error: Error) => void;
  /**
   * The batches of all processes that name the same lock, in one schema of a database, run one after another: each one
   * sees all that those before it have done, and their numbers from a sequence rise as they commit. Default: none, which
   * is enough for SQLite, where a database has one writer.
   */
  lock?: string;
}

/**
 * Gathers jobs into one transaction (see createCompany), without a savepoint for each: two statements a job would cost
 * more than the rare batch with a failing job, which is rolled back and run again with them.
 */
export function createGroupCommit<T>(db: Database<T>, options: GroupCommitOptions = {}): GroupCommit<T> {
  const onLazyError = options.onLazyError ?? ((error: Error) => process.emitWarning(error));
  const batches = createBatches(db, options.lock);
  const queue = createJobQueue<T>((jobs) => commit(batches, jobs));
  // In a turn of its own, so that a listener that throws cannot stop the queue.
  const failLazily = (e: unknown) => queueMicrotask(() => onLazyError(e instanceof Error ? e : new Error(String(e))));
  const write = <R>(job: (trx: Transaction<T>) => Promise<R>, waitsForSync: boolean) =>
    new Promise<R>((resolve, fail) => {
      queue.push({ ...jobOf(job, resolve), fail, waitsForSync, ridesAlong: false });
    });
  const riding = { ridesAlong: true, fail: failLazily, waitsForSync: false };
  return {
    write: (job) => write(job, true),
    writeThenSync: (job) => write(job, false),
    writeLazily: (job) => queue.push({ ...jobOf(job, ignore), ...riding }),
    writeRow: (kind, row) =>
      new Promise((resolve, fail) => {
        queue.push({ ...rowJobOf(kind, row, resolve), fail, waitsForSync: true, ridesAlong: false });
      }),
    writeRowAlong: (kind, row, until) =>
      new Promise((resolve, fail) => {
        const job = { ...rowJobOf(kind, row, resolve), fail, waitsForSync: true, ridesAlong: true };
        queue.push(job);
        const hurry = () => queue.hurry(job);
        until.then(hurry, hurry);
      }),
    writeRowLazily: (kind, row) => queue.push({ ...rowJobOf(kind, row, ignore), ...riding }),
    close: () => queue.close(),
  };
}

type Work<T> = Pick<Job<T>, "run" | "waiting">;

function jobOf<T, R>(job: (trx: Transaction<T>) => Promise<R>, resolve: (value: R) => void): Work<T> {
  return {
    async run(trx) {
      const value = await job(trx);
      return () => resolve(value);
    },
  };
}

function rowJobOf<T, Row, R>(kind: RowKind<T, Row, R>, row: Row, resolve: (value: R) => void): Work<T> {
  const reportOf = (result: unknown) => () => resolve(result as R);
  const waiting = { kind: kind as RowKind<T, unknown, unknown>, row, reportOf };
  return { ...jobOf((trx) => kind.one(trx, row), resolve), waiting };
}

function ignore(): void {}

/**
 * Runs the jobs in one transaction; where one of them fails, again in one that keeps them apart, and where even that cannot
 * be committed one by one. Each job's outcome is in the result.
 */
async function commit<T>(batches: Batches<T>, jobs: readonly Job<T>[]): Promise<Report[]> {
  let end = await batches.run(jobs);
  if (end.kind === "job_failed" && jobs.length > 1) end = await batches.run(jobs, true);
  if (end.kind === "job_failed" && jobs.length > 1) return commitEach(batches, jobs);
  if (end.kind !== "committed") return jobs.map((job) => () => job.fail(end.error));
  try {
    await batches.sync(jobs);
    return end.reports;
  } catch (e: unknown) {
    return jobs.map((job) => () => job.fail(e));
  }
}

async function commitEach<T>(batches: Batches<T>, jobs: readonly Job<T>[]): Promise<Report[]> {
  const reports: Report[] = [];
  for (const job of jobs) reports.push(...(await commit(batches, [job])));
  return reports;
}
