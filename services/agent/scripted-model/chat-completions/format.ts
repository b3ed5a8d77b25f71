import { ApiError } from "../api-error.ts";
import { bearerOf, checkPath } from "../request-body.ts";
import type { SeenResult } from "../script.ts";
import { type ScriptedModel, type ScriptedModelOptions, startScripted } from "../server.ts";
import type { WireFormat } from "../wire-format.ts";
import { type ChatRequest, checkRequest } from "./check-request.ts";
import { chunkParts } from "./chunks.ts";
import type { Dialect } from "./dialects.ts";

/** A scripted model behind the Chat Completions API, as the dialect's server speaks it. It only streams. */
export function startScriptedChat(
  dialect: Dialect,
  options: ScriptedModelOptions,
): Promise<ScriptedModel<ChatRequest>> {
  return startScripted(chatCompletions(dialect), options);
}

function chatCompletions(dialect: Dialect): WireFormat<ChatRequest> {
  const { kind, needsKey, useIdKind } = dialect;
  return {
    checkAccess(request, apiKey) {
      checkPath(request, "/v1/chat/completions");
      const key = bearerOf(request);
      if (needsKey && key === undefined) throw new ApiError(401, "You didn't provide an API key.");
      if (apiKey !== undefined && key !== apiKey) throw new ApiError(401, `Incorrect API key provided: ${key}.`);
    },
    checkRequest: (body) => checkRequest(body, dialect),
    turnIndex: ({ messages }) => messages.filter((message) => message.role === "assistant").length,
    resultsIn,
    errorBody: ({ status, type, message }) => ({ error: { message, ...dialect.error(status, type) } }),
    stream(turn, request, newId) {
      const usage = request.stream_options?.include_usage ?? false;
      return chunkParts(turn, dialect, { id: newId("chatcmpl"), model: request.model, usage });
    },
    whole: () => undefined,
    newUseId: (newId) => newId(useIdKind),
    async adapter(url, apiKey) {
      const { createChatModel } = await import("../../providers/chat-completions/adapter.ts");
      return createChatModel({ kind, apiKey, baseUrl: `${url}/v1`, model: "scripted" });
    },
  };
}

function resultsIn({ messages }: ChatRequest): SeenResult[] {
  const uses = new Map(
    messages
      .flatMap((message) => (message.role === "assistant" ? (message.tool_calls ?? []) : []))
      .flatMap((call) => (call.type === "function" ? [[call.id, call.function] as const] : [])),
  );
  return messages.flatMap((message) => {
    const use = message.role === "tool" ? uses.get(message.tool_call_id) : undefined;
    if (message.role !== "tool" || use === undefined) return [];
    const content = typeof message.content === "string" ? message.content : "";
    return [{ name: use.name, input: JSON.parse(use.arguments), isError: content.startsWith("error:"), content }];
  });
}
