/** The longest that an answer is sent before the caller's deadline, in milliseconds. */
const MOST_SPARE_MS = 1000;

/** The part of the time left that is kept for the way back. */
const SPARE_PART = 0.2;

/**
 * How long a held call waits for its human, in milliseconds: as long as the caller asks, and no longer than leaves time
 * to answer before its deadline. A caller that names neither does not wait.
 *
 * @param requestedMs what the caller asks for; undefined where it does not say.
 * @param remainingMs until the caller's deadline; undefined where it has none.
 */
export function waitMsOf(requestedMs: number | undefined, remainingMs: number | undefined): number {
  if (remainingMs === undefined) return requestedMs ?? 0;
  const left = Math.max(0, remainingMs);
  const allowed = Math.floor(left - Math.min(MOST_SPARE_MS, left * SPARE_PART));
  return Math.min(requestedMs ?? allowed, allowed);
}

/**
 * What a promise comes to, unless the signal is aborted first: then it rejects with the signal's reason, and the promise
 * is left to itself.
 */
export function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const stop = () => reject(signal.reason);
  if (signal.aborted) stop();
  else signal.addEventListener("abort", stop, { once: true });
  return Promise.race([promise, aborted]).finally(() => signal.removeEventListener("abort", stop));
}
