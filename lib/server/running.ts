/** The requests that a server is serving, each with what aborts it. */
export interface Running {
  /** Aborts at once where the server is done waiting for a drain. */
  add(request: AbortController): void;
  has(request: AbortController): boolean;
  delete(request: AbortController): void;
}

/** Aborts what runs, with its reason, when `signal` is: one listener for all requests in place of one for each. */
export function runningUntil(signal: AbortSignal): Running {
  const running = new Set<AbortController>();
  signal.addEventListener("abort", () => {
    for (const request of [...running]) request.abort(signal.reason);
  });
  return {
    add(request) {
      running.add(request);
      if (signal.aborted) request.abort(signal.reason);
    },
    has: (request) => running.has(request),
    delete: (request) => void running.delete(request),
  };
}

/** The reason of a signal whose request has ended by itself. Making one for each request would take a stack trace. */
export const ENDED = new DOMException("the call has ended", "AbortError");
