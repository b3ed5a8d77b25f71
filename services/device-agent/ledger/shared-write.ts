import type { QueryRunner } from "../../../lib/store/prepared.ts";

/** Writes one row or finds out why not. Never throws for what is in the row: then all rows of its turn would be lost. */
export type RowJob<R> = (trx: QueryRunner) => Promise<R>;

/** One of the ways in which a group commit takes a job. */
export type WriteJob = <R>(job: (trx: QueryRunner) => Promise<R>) => Promise<R>;

interface Waiting {
  run(trx: QueryRunner): Promise<() => void>;
  fail(error: unknown): void;
}

/**
 * Runs the row jobs that come until the next commit begins as one job of the group commit. A group commit keeps a
 * savepoint for each job, so that one can fail alone; these cannot, and two savepoints a call cost more than the rows.
 */
export function shareWrites(write: WriteJob): <R>(job: RowJob<R>) => Promise<R> {
  let gathering: Waiting[] | undefined;

  const commit = async (batch: readonly Waiting[]): Promise<void> => {
    try {
      const resolvers = await write(async (trx) => {
        gathering = undefined;
        const done: (() => void)[] = [];
        for (const waiting of batch) done.push(await waiting.run(trx));
        return done;
      });
      for (const resolve of resolvers) resolve();
    } catch (error: unknown) {
      if (gathering === batch) gathering = undefined;
      for (const waiting of batch) waiting.fail(error);
    }
  };

  return (job) =>
    new Promise((resolve, reject) => {
      const run = async (trx: QueryRunner) => {
        const value = await job(trx);
        return () => resolve(value);
      };
      if (gathering !== undefined) {
        gathering.push({ run, fail: reject });
        return;
      }
      gathering = [{ run, fail: reject }];
      void commit(gathering);
    });
}
