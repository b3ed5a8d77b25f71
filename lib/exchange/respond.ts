import { ConnectError } from "@connectrpc/connect";
import { type BatchQueue, createBatchQueue } from "../async/batch-queue.ts";

/** How one end responds to the requests of an exchange. */
export interface Responder<Request, Response> {
  idOf(request: Request): bigint;
  /** The id of the request that this one cancels; undefined for every other request. */
  canceledId(request: Request): bigint | undefined;
  /** True for a request that may wait without a limit: a stream does not stay open for it, and it can be canceled. */
  mayWait(request: Request): boolean;
  /** Must not reject, but where the signal aborted: then no response is sent. */
  respond(request: Request, signal: AbortSignal): Promise<Response>;
}

/**
 * Responds to the requests of one stream, each on its own and in any order. When the stream ends, or the signal aborts, only
 * its own waiting requests are dropped: what was done stays.
 */
export async function* respondTo<Request, Response>(
  requests: AsyncIterable<readonly Request[]>,
  responder: Responder<Request, Response>,
  signal: AbortSignal,
): AsyncGenerator<Response[]> {
  const responses = createBatchQueue<Response>();
  const ended = new AbortController();
  const end = (): void => {
    ended.abort();
    responses.end();
  };
  signal.addEventListener("abort", end, { once: true });
  if (signal.aborted) end();
  void readRequests(requests, responder, responses, ended.signal).then(end, (e: unknown) => {
    responses.end(ConnectError.from(e));
    end();
  });
  try {
    yield* responses.batches();
  } finally {
    signal.removeEventListener("abort", end);
    end();
  }
}

/** Resolves when there are no more requests and every one that does not wait is answered. */
async function readRequests<Request, Response>(
  requests: AsyncIterable<readonly Request[]>,
  responder: Responder<Request, Response>,
  responses: BatchQueue<Response>,
  ended: AbortSignal,
): Promise<void> {
  const waiting = new Map<bigint, AbortController>();
  const open = new Set<Promise<void>>();
  const wait = async (request: Request): Promise<void> => {
    const id = responder.idOf(request);
    const canceled = new AbortController();
    waiting.set(id, canceled);
    const either = AbortSignal.any([ended, canceled.signal]);
    try {
      const response = await responder.respond(request, either);
      if (!either.aborted) responses.push(response);
    } catch (e: unknown) {
      if (!either.aborted) throw e;
    } finally {
      waiting.delete(id);
    }
  };
  for await (const batch of requests) {
    for (const request of batch) {
      const canceledId = responder.canceledId(request);
      if (canceledId !== undefined) {
        waiting.get(canceledId)?.abort();
      } else if (responder.mayWait(request)) {
        wait(request).catch((e: unknown) => responses.end(ConnectError.from(e)));
      } else {
        const responding = responder.respond(request, ended).then((response) => {
          open.delete(responding);
          responses.push(response);
        });
        open.add(responding);
      }
    }
    await responses.room();
  }
  await Promise.all(open);
}
