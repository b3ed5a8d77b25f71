import { type CallRequest, type CallStream, openCallStream } from "../../client/call-stream.ts";
import type { CompleteCall } from "../../client/complete-call.ts";
import type { RegistryClient } from "../../client/registry.ts";

/** Makes calls on one CallTools stream, which is opened when it is needed. */
export interface StreamCaller {
  /** Resolves with the call's end. Rejects with the stream's error where it breaks first, and where the call is refused. */
  call(request: CallRequest, signal: AbortSignal): Promise<CompleteCall>;
  close(): void;
}

/** A caller that shares its stream between all its calls. */
export function createStreamCaller(registry: RegistryClient): StreamCaller {
  let open: CallStream | undefined;
  const closing = new AbortController();
  const opened = (): CallStream => {
    if (open !== undefined) return open;
    const stream = openCallStream(registry, { signal: closing.signal });
    open = stream;
    void stream.closed.then(() => {
      if (open === stream) open = undefined;
    });
    return stream;
  };
  return {
    async call(request, signal) {
      const left = Promise.withResolvers<never>();
      const leave = () => left.reject(signal.reason);
      signal.addEventListener("abort", leave, { once: true });
      try {
        return await Promise.race([opened().call(request), left.promise]);
      } finally {
        signal.removeEventListener("abort", leave);
      }
    },
    close: () => closing.abort(),
  };
}
