/** Something that was begun. */
export interface Attempt<T> {
  readonly ready: Promise<T>;
  /** Gives it up, or what it resulted in. */
  stop(): void;
}

/** How long to wait for one attempt alone. */
export interface HedgeOptions {
  /**
   * Another is begun whenever none is ready for so many milliseconds; the first two each after a third of it and the next one
   * after two thirds, also anew when one has failed beside another, since then there was an answer.
   */
  againMs: number;
  /** Another is being begun. */
  onAgain(): void;
  /** Gives all of them up. */
  signal: AbortSignal;
}

/** How long the first pauses between attempts are, as parts of the later ones. */
const FIRST_PAUSES = [1 / 3, 1 / 3, 2 / 3] as const;

/**
 * The first attempt that succeeds; the others are stopped. At most two go on at a time, the oldest and the newest: who is
 * busy gets to the oldest first, and the newest goes along a way that may have come back since the others were lost.
 * Rejects when one fails that is alone, and with the signal's reason. Hedged requests after Dean and Barroso, The Tail at
 * Scale, 2013.
 *
 * @param begin must not throw.
 */
export function hedge<T>(begin: () => Attempt<T>, { againMs, onAgain, signal }: HedgeOptions): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  let going: Attempt<T>[] = [];
  let timer: NodeJS.Timeout | undefined;
  const schedule = (round: number): void => {
    clearTimeout(timer);
    timer = setTimeout(
      () => {
        onAgain();
        add();
        schedule(round + 1);
      },
      againMs * (FIRST_PAUSES[round] ?? 1),
    );
  };
  const end = (): void => {
    clearTimeout(timer);
    signal.removeEventListener("abort", abort);
    for (const one of going.splice(0)) one.stop();
  };
  const fail = (error: unknown): void => {
    end();
    reject(error);
  };
  const abort = (): void => fail(signal.reason);
  const remove = (one: Attempt<T>): boolean => {
    const isGoing = going.includes(one);
    going = going.filter((other) => other !== one);
    return isGoing;
  };
  const add = (): void => {
    const one = begin();
    for (const between of going.splice(1)) between.stop();
    going.push(one);
    one.ready.then(
      (value) => {
        if (!remove(one)) return;
        end();
        resolve(value);
      },
      (error: unknown) => {
        if (!remove(one)) return;
        if (going.length === 0) fail(error);
        else schedule(0);
      },
    );
  };
  signal.addEventListener("abort", abort, { once: true });
  if (signal.aborted) abort();
  else {
    add();
    schedule(0);
  }
  return promise;
}
