/** Work that is done again and again. */
export interface Repeated {
  /** Begins no more, and resolves when what is under way is done. */
  stop(): Promise<void>;
}

/**
 * Does a piece of work now, and again so long after each time that it was done. Keeps no process alive.
 *
 * @param onError gets what the work throws; it is done again all the same.
 */
export function every(ms: number, work: () => Promise<unknown>, onError: (error: unknown) => void): Repeated {
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  const turn = async (): Promise<void> => {
    try {
      await work();
    } catch (error: unknown) {
      if (!stopped) onError(error);
    }
    if (!stopped) timer = setTimeout(begin, ms).unref();
  };
  let running = Promise.resolve();
  const begin = (): void => {
    running = turn();
  };
  begin();
  return {
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await running;
    },
  };
}
