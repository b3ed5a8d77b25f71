import type { IncomingMessage } from "node:http";
import { ApiError, errorBody, invalid } from "../api-error.ts";
import { bearerOf, checkPath } from "../request-body.ts";
import type { StreamPart, WireFormat } from "../wire-format.ts";
import { checkRequest } from "./check-request.ts";
import { type StreamEvent, streamEvents, wholeMessage } from "./events.ts";
import { type MessagesRequest, resultsIn, turnIndex } from "./seen.ts";

/** Anthropic's Messages API, streamed or not. */
export const MESSAGES: WireFormat<MessagesRequest> = {
  checkAccess,
  checkRequest,
  turnIndex,
  resultsIn,
  errorBody,
  *stream(turn, request, newId) {
    for (const event of streamEvents(turn, request, newId("msg"))) yield partOf(event);
  },
  whole: (turn, { model, stream }, newId) => (stream ? undefined : wholeMessage(turn, newId("msg"), model)),
  newUseId: (newId) => newId("toolu"),
  async adapter(url, apiKey) {
    const { createAnthropicModel } = await import("../../providers/anthropic/adapter.ts");
    return createAnthropicModel({ apiKey, baseUrl: url, model: "scripted" });
  },
};

/** Lets a request in that has a key and a version, as the API does. Throws ApiError. */
function checkAccess(request: IncomingMessage, apiKey: string | undefined): void {
  checkPath(request, "/v1/messages");
  const key = request.headers["x-api-key"] ?? bearerOf(request);
  if (key === undefined || key === "") throw new ApiError(401, "x-api-key header is required");
  if (apiKey !== undefined && key !== apiKey) throw new ApiError(401, "invalid x-api-key");
  if (!/^\d{4}-\d{2}-\d{2}$/u.test(String(request.headers["anthropic-version"]))) {
    throw invalid("anthropic-version: header is required");
  }
}

/** An event in the form of server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html). */
function partOf(event: StreamEvent): StreamPart {
  return {
    text: `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`,
    isContent: event.type === "content_block_delta",
    isEnd: event.type === "message_delta",
  };
}
