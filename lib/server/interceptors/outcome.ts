import type { Interceptor, StreamResponse } from "@connectrpc/connect";
import { type Call, type CallObserver, callOf, endCall } from "../call.ts";
import type { FollowedCredential } from "../credentials.ts";
import { toFault } from "../to-fault.ts";

/** The outermost interceptor: turns whatever is thrown into the error that the caller gets, and sees the end of each RPC. */
export function outcomeInterceptor(observer: CallObserver): Interceptor {
  return (next) => async (request) => {
    const { signal } = request;
    const call = callOf(request.contextValues);
    if (!request.stream) return runToEnd(call, observer, signal, () => next(request));
    const response = await begin(call, observer, signal, () =>
      next({ ...request, message: checkStream(request.message, call.credential, signal) }),
    );
    // It is one, because the request is.
    const { message } = response as StreamResponse;
    return { ...response, message: watchStream(message, call, observer, signal) } as StreamResponse;
  };
}

/** Runs a unary RPC to its end. What it rejects with is what the caller gets. */
export async function runToEnd<T>(
  call: Call,
  observer: CallObserver,
  signal: AbortSignal,
  run: () => Promise<T>,
): Promise<T> {
  const answer = await begin(call, observer, signal, async () => {
    const found = await run();
    // A wait that ended because the caller's token is refused by now has no answer for it.
    if (call.credential?.refusal !== undefined) throw call.credential.refusal;
    return found;
  });
  conclude(call, observer, signal);
  return answer;
}

async function begin<T>(call: Call, observer: CallObserver, signal: AbortSignal, run: () => Promise<T>): Promise<T> {
  call.isReached = true;
  try {
    call.credential?.check();
    return await run();
  } catch (error) {
    throw conclude(call, observer, signal, error ?? new Error("undefined was thrown"));
  }
}

function conclude(call: Call, observer: CallObserver, signal: AbortSignal, thrown?: unknown): unknown {
  if (!call.isSettled) {
    call.isSettled = true;
    if (thrown !== undefined) call.error = toFault(thrown, call, observer);
    // The signal's listener reports the end, but where the caller left early it has come and gone.
    if (signal.aborted) endCall(call, observer);
  }
  return call.error;
}

/** Adds no generator to a stream: that would cost every message several turns of the microtask queue. */
function watchStream<T>(
  messages: AsyncIterable<T>,
  call: Call,
  observer: CallObserver,
  signal: AbortSignal,
): AsyncIterable<T> {
  return {
    [Symbol.asyncIterator]() {
      const it = messages[Symbol.asyncIterator]();
      const watch = (step: Promise<IteratorResult<T>>): Promise<IteratorResult<T>> =>
        step.then(
          (result) => {
            if (call.credential?.refusal !== undefined) {
              // The handler's own end comes with the signal; it is not waited for.
              if (result.done !== true) it.return?.()?.catch(() => undefined);
              throw conclude(call, observer, signal, call.credential.refusal);
            }
            if (result.done === true) conclude(call, observer, signal, left(signal));
            return result;
          },
          (error: unknown) => {
            throw conclude(call, observer, signal, call.credential?.refusal ?? error);
          },
        );
      return {
        next: () => watch(it.next()),
        throw: (error: unknown) => watch(it.throw === undefined ? Promise.reject(error) : it.throw(error)),
        return: (value?: unknown) => watch(it.return?.(value) ?? Promise.resolve({ done: true, value })),
      };
    },
  };
}

/** A stream that ends because its caller left, its deadline passed or the server drains did not end well. */
function left(signal: AbortSignal): unknown {
  return signal.aborted ? signal.reason : undefined;
}

/**
 * A caller's messages, each let through only while the caller's credential is valid. A wait for the next one ends with the
 * refusal at once, also from a caller who sends nothing more. No generator and no race: either would cost every message more.
 *
 * @param signal aborted when the credential is refused.
 */
function checkStream<T>(
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
