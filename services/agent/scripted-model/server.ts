import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Model } from "../providers/model.ts";
import { ApiError } from "./api-error.ts";
import { MESSAGES } from "./messages/format.ts";
import type { MessagesRequest } from "./messages/seen.ts";
import { readJson } from "./request-body.ts";
import { type PlayedTurn, playTurn, type ScriptedTurn } from "./script.ts";
import { sendStream } from "./send-stream.ts";
import type { WireFormat } from "./wire-format.ts";

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
export interface ScriptedModel<Request = MessagesRequest> {
  /** Its address, without the API's path. */
  readonly url: string;
  /** The adapter over it. */
  readonly model: Model;
  /** The requests that were let in, in order. */
  readonly requests: readonly Request[];
  /** What went wrong with the script itself: turns that did not expect what they got. */
  readonly problems: readonly Error[];
  /** Stops listening and breaks what is open. */
  close(): Promise<void>;
}

/** What a request is answered with. */
interface Stage<Request> {
  readonly format: WireFormat<Request>;
  readonly options: ScriptedModelOptions;
  readonly requests: Request[];
  readonly problems: Error[];
  /** How often each turn was asked for. */
  readonly asked: Map<number, number>;
}

/** A scripted model behind Anthropic's Messages API. */
export function startScriptedModel(options: ScriptedModelOptions): Promise<ScriptedModel> {
  return startScripted(MESSAGES, options);
}

/**
 * A server on the loopback interface that speaks a provider's API and plays a script, for tests and for a demonstration
 * without a key. Which turn is played depends on the conversation alone, so that a request that is tried again gets the
 * same turn, and several conversations may play at once.
 */
export async function startScripted<Request>(
  format: WireFormat<Request>,
  options: ScriptedModelOptions,
): Promise<ScriptedModel<Request>> {
  const stage: Stage<Request> = { format, options, requests: [], problems: [], asked: new Map() };
  const server = createServer((request, response) => {
    answer(stage, request, response).catch(() => response.destroy());
  });
  server.listen(options.port ?? 0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    model: await format.adapter(url, options.apiKey ?? "scripted"),
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

async function answer<R>(stage: Stage<R>, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { format, options, requests } = stage;
  const requestId = newId("req");
  response.setHeader("request-id", requestId);
  try {
    format.checkAccess(request, options.apiKey);
    const body = format.checkRequest(await readJson(request));
    requests.push(body);
    const { script, played, breaks } = nextTurn(stage, body);
    const whole = format.whole(played, body, newId);
    if (whole !== undefined) sendJson(response, 200, whole);
    else await sendStream(response, format.stream(played, body, newId), script, breaks);
  } catch (thrown: unknown) {
    const error = thrown instanceof ApiError ? thrown : new ApiError(500, String(thrown));
    for (const [name, value] of Object.entries(error.headers)) response.setHeader(name, value);
    sendJson(response, error.status, format.errorBody(error, requestId));
  }
}

interface NextTurn {
  script: ScriptedTurn;
  played: PlayedTurn;
  /** The stream is to be cut off. */
  breaks: boolean;
}

function nextTurn<R>({ format, options, asked, problems }: Stage<R>, body: R): NextTurn {
  const index = format.turnIndex(body);
  const script = options.turns[index];
  if (script === undefined) throw final(`the script has no turn ${index + 1}`);
  const before = asked.get(index) ?? 0;
  asked.set(index, before + 1);
  const failure = script.failures?.[before];
  if (failure !== undefined) throw new ApiError(failure.status, failure.message ?? "scripted", failure);
  try {
    const seen = { results: format.resultsIn(body) };
    script.expect?.(seen);
    const played = playTurn(script, seen, () => format.newUseId(newId));
    return { script, played, breaks: before - (script.failures?.length ?? 0) < (script.breaks ?? 0) };
  } catch (thrown: unknown) {
    const problem = thrown instanceof Error ? thrown : new Error(String(thrown));
    problems.push(problem);
    throw final(`the script's turn ${index + 1} did not expect this: ${problem.message}`);
  }
}

/** An error that trying again does not change. */
function final(message: string): ApiError {
  return new ApiError(500, message, { headers: { "x-should-retry": "false" } });
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
