import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { createAnthropicModel } from "../providers/anthropic/adapter.ts";
import type { Model } from "../providers/model.ts";
import { checkAccess, readJson } from "./admit.ts";
import { ApiError, errorBody } from "./api-error.ts";
import { checkRequest } from "./check-request.ts";
import { type MessagesRequest, type PlayedTurn, playTurn, type ScriptedTurn, seenIn, turnIndex } from "./script.ts";
import { sseText, streamEvents, wholeMessage } from "./sse.ts";

/** What a scripted model plays. */
export interface ScriptedModelOptions {
  /** One for each turn of a conversation. A conversation that goes on longer gets an error. */
  turns: readonly ScriptedTurn[];
  /** The only key that is let in. Default: any that is not empty. */
  apiKey?: string;
  /** Default 0: any free one. */
  port?: number;
}

/** A scripted model that listens. */
export interface ScriptedModel {
  /** The base URL for a client. */
  readonly url: string;
  /** The adapter over it. */
  readonly model: Model;
  /** The requests that were let in, in order. */
  readonly requests: readonly MessagesRequest[];
  /** What went wrong with the script itself: turns that did not expect what they got. */
  readonly problems: readonly Error[];
  /** Stops listening and breaks what is open. */
  close(): Promise<void>;
}

/** What a request is answered with. */
interface Stage {
  readonly options: ScriptedModelOptions;
  readonly requests: MessagesRequest[];
  readonly problems: Error[];
  /** How often each turn was asked for. */
  readonly asked: Map<number, number>;
}

/**
 * A server on the loopback interface that speaks Anthropic's Messages API (POST /v1/messages, streamed or not) and
 * plays a script, for tests and for a demonstration without a key. Which turn is played depends on the conversation
 * alone, so that a request that is tried again gets the same turn, and several conversations may play at once.
 */
export async function startScriptedModel(options: ScriptedModelOptions): Promise<ScriptedModel> {
  const stage: Stage = { options, requests: [], problems: [], asked: new Map() };
  const server = createServer((request, response) => {
    answer(stage, request, response).catch(() => response.destroy());
  });
  server.listen(options.port ?? 0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    model: createAnthropicModel({ apiKey: options.apiKey ?? "scripted", baseUrl: url, model: "scripted" }),
    requests: stage.requests,
    problems: stage.problems,
    async close() {
      if (!server.listening) return;
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

async function answer(stage: Stage, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const requestId = newId("req");
  response.setHeader("request-id", requestId);
  try {
    checkAccess(request, stage.options.apiKey);
    const body = checkRequest(await readJson(request));
    stage.requests.push(body);
    const { turn, breaks } = nextTurn(stage, body);
    if (body.stream === true) return await stream(response, turn, body.model, breaks);
    sendJson(response, 200, wholeMessage(turn.played, newId("msg"), body.model));
  } catch (thrown: unknown) {
    const error = thrown instanceof ApiError ? thrown : new ApiError(500, String(thrown));
    for (const [name, value] of Object.entries(error.headers)) response.setHeader(name, value);
    sendJson(response, error.status, errorBody(error, requestId));
  }
}

interface NextTurn {
  turn: { script: ScriptedTurn; played: PlayedTurn };
  /** The stream is to be cut off. */
  breaks: boolean;
}

function nextTurn(stage: Stage, body: MessagesRequest): NextTurn {
  const index = turnIndex(body);
  const script = stage.options.turns[index];
  if (script === undefined) throw final(`the script has no turn ${index + 1}`);
  const asked = stage.asked.get(index) ?? 0;
  stage.asked.set(index, asked + 1);
  const failure = script.failures?.[asked];
  if (failure !== undefined) throw new ApiError(failure.status, failure.message ?? "scripted", failure);
  try {
    script.expect?.(body);
    const played = playTurn(script, seenIn(body), () => newId("toolu"));
    return { turn: { script, played }, breaks: asked - (script.failures?.length ?? 0) < (script.breaks ?? 0) };
  } catch (thrown: unknown) {
    const problem = thrown instanceof Error ? thrown : new Error(String(thrown));
    stage.problems.push(problem);
    throw final(`the script's turn ${index + 1} did not expect this: ${problem.message}`);
  }
}

/** An error that trying again does not change. */
function final(message: string): ApiError {
  return new ApiError(500, message, { headers: { "x-should-retry": "false" } });
}

async function stream(response: ServerResponse, turn: NextTurn["turn"], model: string, breaks: boolean): Promise<void> {
  const closed = new AbortController();
  response.on("close", () => closed.abort());
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" });
  for (const event of streamEvents(turn.played, newId("msg"), model)) {
    if (closed.signal.aborted) return;
    if (breaks && event.type === "content_block_delta") return cutOff(response);
    if (event.type === "message_delta") await turn.script.linger?.(closed.signal);
    if (!response.write(sseText(event)) && !closed.signal.aborted) await drained(response, closed.signal);
  }
  response.end();
}

/** Breaks a stream off after what was written, which would be lost with the connection if it were still waiting. */
function cutOff(response: ServerResponse): void {
  response.write(": \n\n", () => response.destroy());
}

async function drained(response: ServerResponse, closed: AbortSignal): Promise<void> {
  await once(response, "drain", { signal: closed }).catch(() => undefined);
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

function newId(kind: string): string {
  return `${kind}_${randomBytes(12).toString("hex")}`;
}
