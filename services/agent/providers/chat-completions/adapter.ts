import OpenAI, { APIConnectionError, APIConnectionTimeoutError, APIError, APIUserAbortError } from "openai";
import { failureOf } from "../failure.ts";
import type { Model } from "../model.ts";
import { type TurnSettings, takeTurn, turnSettings } from "../take-turn.ts";
import { chatRequest, MAX_NAME_LENGTH } from "./request.ts";
import type { ServerKind } from "./server-kind.ts";
import { readChunks } from "./stream.ts";
import { turnOf } from "./turn.ts";

/** How to reach a model behind the Chat Completions API. */
export interface ChatModelOptions extends TurnSettings {
  kind: ServerKind;
  /** Where the API is, with its "/v1". */
  baseUrl: string;
  /** Sent as a bearer token. Not empty: a server that takes none ignores it. */
  apiKey: string;
  model: string;
  /** The most tokens of one turn, reasoning included. Default: the kind's. */
  maxTokens?: number;
}

const ERRORS = { APIError, APIConnectionError, APIConnectionTimeoutError, APIUserAbortError };

/**
 * A model behind the Chat Completions API, OpenAI's or a local server's, streamed.
 *
 * Nothing is taken from the environment but OPENAI_CUSTOM_HEADERS, which the SDK reads in any case: what else it would
 * read there is OpenAI's, and not for a server of another's.
 */
export function createChatModel(options: ChatModelOptions): Model {
  const { kind, apiKey, model, maxTokens } = options;
  const limits = turnSettings(options);
  const client = new OpenAI({
    apiKey,
    baseURL: options.baseUrl,
    adminAPIKey: null,
    organization: null,
    project: null,
    webhookSecret: null,
    timeout: limits.timeoutMs,
    maxRetries: 0,
    logLevel: "off",
  });
  return {
    name: model,
    turn: (request) =>
      takeTurn(request, limits, {
        maxNameLength: MAX_NAME_LENGTH,
        async once({ onText, ...rest }, names, signal) {
          const body = chatRequest(rest, names, { model, kind, maxTokens });
          const stream = await client.chat.completions.create(body, { signal });
          return turnOf(await readChunks(stream, onText), names, rest.messages, kind);
        },
        failure: (thrown) => failureOf(thrown, ERRORS, factsOf, apiKey),
      }),
  };
}

/** An error's own words: in an object called "error" nearly everywhere, and bare from some servers. */
function factsOf(error: InstanceType<typeof APIError>) {
  const body: unknown = error.error;
  const said = typeof body === "object" && body !== null && "message" in body ? body.message : undefined;
  const code: unknown = error.code;
  return {
    type: error.type,
    message: typeof said === "string" ? said : error.message,
    code: typeof code === "number" ? code : undefined,
  };
}
