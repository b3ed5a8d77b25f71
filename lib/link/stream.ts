/**
 * One side of a bidirectional stream: what is sent goes in, what comes back comes out. A client's streaming method is one;
 * so is a service's own handler, where both are in one process. The messages are the same there, but need no encoding, which
 * is most of what a message costs.
 */
export type StreamFactory<Req, Res> = (requests: AsyncIterable<Req>, signal: AbortSignal) => AsyncIterable<Res>;

/**
 * The same stream with each message in another wrapping. No generator, because that would cost every message several
 * turns of the microtask queue; with `throw`, because a transport calls that on what it reads from.
 */
export function mapStream<A, B>(messages: AsyncIterable<A>, wrap: (message: A) => B): AsyncIterable<B> {
  return {
    [Symbol.asyncIterator]() {
      const it = messages[Symbol.asyncIterator]();
      const wrapped = (result: IteratorResult<A>): IteratorResult<B> =>
        result.done === true ? result : { done: false, value: wrap(result.value) };
      return {
        next: () => it.next().then(wrapped),
        throw: (error: unknown) => it.throw?.(error).then(wrapped) ?? Promise.reject(error),
        return: (value?: unknown) => it.return?.(value).then(wrapped) ?? Promise.resolve({ done: true, value }),
      };
    },
  };
}
