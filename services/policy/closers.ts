/** What has to be closed, the last first. */
export interface Closers {
  /** Adds one; it is closed before those that were added before it. */
  add(closer: () => Promise<unknown> | undefined): void;
  /**
   * Closes all, also where one of them fails, and rejects with the first failure. Those that were closed are not closed
   * again.
   */
  closeAll(): Promise<void>;
}

/** Nothing to close yet. */
export function createClosers(): Closers {
  const closers: (() => Promise<unknown> | undefined)[] = [];
  return {
    add: (closer) => void closers.push(closer),
    async closeAll() {
      const failures: unknown[] = [];
      for (const closer of closers.splice(0).reverse()) {
        try {
          await closer();
        } catch (error: unknown) {
          failures.push(error);
        }
      }
      if (failures.length > 0) throw failures[0];
    },
  };
}
