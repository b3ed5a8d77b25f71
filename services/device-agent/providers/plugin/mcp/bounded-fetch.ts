import type { FetchLike } from "@modelcontextprotocol/client";
import { type Budget, createBudget } from "./budget.ts";

/** The most that a server may answer to one request, progress included, in bytes. */
const ANSWER = { burst: 8 * 1024 * 1024, perSecond: 64 * 1024 };

/** The most that it may send where it was asked for nothing but news, in bytes. */
const NEWS = { burst: 1024 * 1024, perSecond: 64 * 1024 };

/** fetch for a server that is not trusted: a body that is longer, or comes faster, than it may is an error. */
export const boundedFetch: FetchLike = async (url, init) => {
  const response = await fetch(url, init);
  if (response.body === null) return response;
  const budget = createBudget(init?.method === "POST" ? ANSWER : NEWS);
  const { status, statusText, headers } = response;
  return new Response(response.body.pipeThrough(bounded(budget)), { status, statusText, headers });
};

function bounded(budget: Budget): TransformStream<Uint8Array, Uint8Array> {
  return new TransformStream({
    transform(chunk, controller) {
      if (budget.take(chunk.length)) controller.enqueue(chunk);
      else controller.error(new Error("it sent more than it was asked for"));
    },
  });
}
