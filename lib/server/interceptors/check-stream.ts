import type { FollowedCredential } from "../credentials.ts";

/**
 * A caller's messages, each let through only while the caller's credential is valid. A wait for the next one ends with the
 * refusal at once, also from a caller who sends nothing more. No generator and no race: either would cost every message more.
 *
 * @param signal aborted when the credential is refused.
 */
export function checkStream<T>(
  messages: AsyncIterable<T>,
  credential: FollowedCredential | undefined,
  signal: AbortSignal,
): AsyncIterable<T> {
  if (credential === undefined) return messages;
  return {
    [Symbol.asyncIterator]() {
      const it = messages[Symbol.asyncIterator]();
      let stopWaiting: ((reason: unknown) => void) | undefined;
      const onAbort = (): void => {
        if (credential.refusal !== undefined) stopWaiting?.(credential.refusal);
      };
      signal.addEventListener("abort", onAbort, { once: true });
      const next = (): Promise<IteratorResult<T>> =>
        new Promise((resolve, reject) => {
          stopWaiting = reject;
          it.next().then((result) => {
            try {
              credential.check();
              resolve(result);
            } catch (refusal: unknown) {
              reject(refusal);
            }
          }, reject);
        });
      return {
        next,
        throw: (error: unknown) => it.throw?.(error) ?? Promise.reject(error),
        return: (value?: unknown) => it.return?.(value) ?? Promise.resolve({ done: true, value }),
      };
    },
  };
}
