/** Decides whether what came first waits for more, so that they share one commit or one signature. */
export interface Company {
  /** Calls back when it is time to go on with what has come. */
  gather(then: () => void): void;
  /** How many went on together. */
  came(count: number): void;
}

/** After so many that came alone nothing waits any more. */
const ALONE = 16;

/**
 * In a crowd, waits for two turns of the event loop. A turn runs all I/O callbacks, and so gathers the requests of different
 * connections; those that the end of another batch has set going come in the second. What has come alone for a while waits only until the running callback and its promises are done. A second
 * one in the same turn is a crowd.
 */
export function createCompany(): Company {
  let alone = 0;
  let isTurnTaken = false;
  const endTurn = (): void => {
    isTurnTaken = false;
  };
  return {
    gather(then) {
      if (isTurnTaken) alone = 0;
      if (alone < ALONE) {
        setImmediate(() => setImmediate(then));
        return;
      }
      isTurnTaken = true;
      setImmediate(endTurn);
      process.nextTick(then);
    },
    came(count) {
      alone = count > 1 ? 0 : alone + 1;
    },
  };
}
