import type { TlsSource } from "../identity/tls-source.ts";
import type { StreamFactory } from "./stream.ts";

/**
 * The same streams, which end when the TLS certificate is replaced: a stream would otherwise stay on the connection
 * that shows the old certificate, and be cut off when that expires. The link opens it again, with the new
 * one, and sends again what was not answered. Without TLS nothing ends.
 */
export function untilRenewed<Req, Res>(
  open: StreamFactory<Req, Res>,
  tls: Pick<TlsSource, "onChange"> | undefined,
): StreamFactory<Req, Res> {
  if (tls === undefined) return open;
  return (requests, signal) => {
    const renewed = new AbortController();
    const stop = tls.onChange(() => renewed.abort(new Error("the certificate was replaced")));
    const stream = open(requests, AbortSignal.any([signal, renewed.signal]));
    return endingWith(stream, stop);
  };
}

/** The same stream, with a call when it is over. No generator: see mapStream. */
function endingWith<T>(stream: AsyncIterable<T>, over: () => void): AsyncIterable<T> {
  return {
    [Symbol.asyncIterator]() {
      const it = stream[Symbol.asyncIterator]();
      const seen = (result: IteratorResult<T>): IteratorResult<T> => {
        if (result.done === true) over();
        return result;
      };
      const failed = (error: unknown): never => {
        over();
        throw error;
      };
      const leave = (value?: unknown): Promise<IteratorResult<T>> => {
        over();
        return it.return?.(value) ?? Promise.resolve({ done: true, value });
      };
      return { next: () => it.next().then(seen, failed), return: leave };
    },
  };
}
