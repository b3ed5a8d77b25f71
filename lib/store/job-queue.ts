import { createCompany } from "../async/company.ts";
import type { Job, Report } from "./batch.ts";

/** Jobs in one transaction at most; bounds how long a batch holds the writer. */
const MAX_BATCH = 512;

/** How long a job that rides along waits for company, in milliseconds. */
const RIDE_DELAY_MS = 50;

/** Jobs that wait for their batch. */
export interface JobQueue<T> {
  /** Starts a batch, unless the job rides along. */
  push(job: Job<T>): void;
  /** Lets a job that is still in the queue wait no longer for another one. */
  hurry(job: Job<T>): void;
  /** Refuses new jobs and resolves when all earlier ones are done. */
  close(): Promise<void>;
}

/**
 * Gathers jobs into batches (see createCompany), which run one after another, in the order in which the jobs came.
 *
 * @param commitBatch runs a batch; its reports are called next. Must not reject.
 */
export function createJobQueue<T>(commitBatch: (jobs: readonly Job<T>[]) => Promise<Report[]>): JobQueue<T> {
  const jobs: Job<T>[] = [];
  let draining: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let closed = false;
  /** How many of the jobs ride along. */
  let riders = 0;
  const company = createCompany();

  function startDraining(): void {
    draining ??= drain();
  }

  async function drain(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    for (let goesOn = jobs.length > 0; goesOn; goesOn = jobs.length > (closed ? 0 : riders)) {
      await new Promise<void>(company.gather);
      const batch = jobs.splice(0, MAX_BATCH);
      const riding = batch.filter(({ ridesAlong }) => ridesAlong).length;
      riders -= riding;
      company.came(batch.length - riding);
      for (const report of await commitBatch(batch)) report();
    }
    draining = undefined;
    if (riders > 0) startLater();
  }

  function startLater(): void {
    timer ??= setTimeout(startDraining, RIDE_DELAY_MS);
  }

  return {
    push(job) {
      if (closed) {
        // What no caller waits for is dropped.
        const isLazy = job.ridesAlong && !job.waitsForSync;
        return isLazy ? undefined : job.fail(new Error("the group commit is closed"));
      }
      jobs.push(job);
      if (!job.ridesAlong) return startDraining();
      riders++;
      if (draining === undefined) startLater();
    },
    hurry(job) {
      if (!job.ridesAlong || !jobs.includes(job)) return;
      job.ridesAlong = false;
      riders--;
      startDraining();
    },
    async close() {
      closed = true;
      await (draining ?? drain());
    },
  };
}
