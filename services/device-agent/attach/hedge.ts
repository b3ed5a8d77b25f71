/** Something that was begun. */
export interface Attempt<T> {
  readonly ready: Promise<T>;
  /** Gives it up, or what it resulted in. */
  stop(): void;
}

/** How long to wait for one attempt alone. */
export interface HedgeOptions {
  /** Another is begun whenever none is ready after so many milliseconds. */
  againMs: number;
  /** Another is being begun. */
  onAgain(): void;
  /** Gives all of them up. */
  signal: AbortSignal;
}

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
  const again = (): void => {
    onAgain();
    add();
  };
  const end = (): void => {
    clearInterval(timer);
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
        if (remove(one) && going.length === 0) fail(error);
      },
    );
  };
  const timer = setInterval(again, againMs);
  signal.addEventListener("abort", abort, { once: true });
  if (signal.aborted) abort();
  else add();
  return promise;
}
