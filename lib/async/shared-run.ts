/** Work that is asked for often and serves everybody who asked before it began. */
export interface SharedRun {
  /**
   * Runs the work. Those who ask while it runs share one run that begins when that is over. Rejects as the run does.
   */
  run(): Promise<void>;
  /** Resolves when nothing runs and no caller waits, however it ended. */
  quiet(): Promise<void>;
}

/** One run at a time, and at most one that waits. */
export function createSharedRun(work: () => Promise<void>): SharedRun {
  let running: Promise<void> | undefined;
  let next: Promise<void> | undefined;
  const run = (): Promise<void> => {
    if (running === undefined) {
      running = work().finally(() => {
        running = undefined;
      });
      return running;
    }
    next ??= running
      .catch(() => undefined)
      .then(() => {
        next = undefined;
        return run();
      });
    return next;
  };
  return {
    run,
    quiet: async () => (next ?? running)?.catch(() => undefined),
  };
}
