import type { ServerResponse } from "node:http";
import {
  INTERNAL_ERROR,
  isInputRequiredResult,
  ProtocolError,
  SERVER_INFO_META_KEY,
} from "@modelcontextprotocol/server";
import { createAnswer } from "./answer.ts";
import type { DirectCall } from "./direct-call.ts";
import { handleCall } from "./handle-call.ts";
import { type Cancelation, type GateServerOptions, serverInfo, type ToolRequest } from "./server.ts";
import { MISSING_CAPABILITY } from "./tasks.ts";

/** What a call is served with. */
export interface CallOptions
  extends Pick<GateServerOptions, "gate" | "version" | "waitMs" | "approvalUrl" | "onError"> {
  /** Aborted when the answer cannot be sent any more. */
  signal: AbortSignal;
  canceled: Cancelation;
}

const INTERNAL = { code: INTERNAL_ERROR, message: "internal error", data: undefined };

/** Answers a call of a tool. */
export async function serveCall(call: DirectCall, options: CallOptions, response: ServerResponse): Promise<void> {
  const { id, isModern, params, envelope, progressToken } = call;
  const { gate, version, waitMs = 45_000, signal, canceled, approvalUrl, onError } = options;
  const answer = createAnswer(response, signal);
  const request: ToolRequest = {
    gate,
    waitMs,
    signal,
    canceled,
    envelope,
    approvalUrl,
    state: params.requestState as string | undefined,
    responses: params.inputResponses as ToolRequest["responses"],
    notify:
      progressToken === undefined
        ? undefined
        : (progress, message) => answer.notify("notifications/progress", { progressToken, progress, message }),
    onError,
  };
  try {
    const result = await handleCall(params, request);
    answer.end(200, { jsonrpc: "2.0", id, result: isModern ? modern(result, version) : result });
  } catch (error: unknown) {
    if (!(error instanceof ProtocolError)) onError(error);
    const { code, message, data } = error instanceof ProtocolError ? error : INTERNAL;
    const status = code === MISSING_CAPABILITY ? 400 : 200;
    answer.end(status, { jsonrpc: "2.0", id, error: { code, message, ...(data !== undefined && { data }) } });
  }
}

/** With what each result of 2026-07-28 has: its kind, and who sent it. A task is no result of a tool, and has no content. */
function modern(result: Awaited<ReturnType<typeof handleCall>>, version: string): object {
  const meta = { ...result._meta, [SERVER_INFO_META_KEY]: serverInfo(version) };
  if (isInputRequiredResult(result)) return { ...result, _meta: meta };
  if (result.resultType !== "task") return { resultType: "complete", ...result, _meta: meta };
  const { content: _content, ...task } = result;
  return { ...task, _meta: meta };
}
