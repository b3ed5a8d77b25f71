import Anthropic, {
  APIConnectionError,
  APIConnectionTimeoutError,
  APIError,
  APIUserAbortError,
} from "@anthropic-ai/sdk";
import { failureOf } from "../failure.ts";
import type { Model } from "../model.ts";
import { type TurnSettings, takeTurn, turnSettings } from "../take-turn.ts";
import { messagesRequest } from "./request.ts";
import { readMessage } from "./stream.ts";
import { turnOf } from "./turn.ts";

/** How to reach a model of Anthropic's. */
export interface AnthropicOptions extends TurnSettings {
  /** Required. Sent as a bearer token. */
  apiKey: string;
  /** Where the Messages API is. Default https://api.anthropic.com. */
  baseUrl?: string;
  model: string;
  /** The most tokens of one turn, thinking included. Default 16384. */
  maxTokens?: number;
  /** Mark the system prompt, the tools and the conversation for the provider's cache. Default true. */
  cache?: boolean;
}

const ERRORS = { APIError, APIConnectionError, APIConnectionTimeoutError, APIUserAbortError };

/**
 * A model behind Anthropic's Messages API, or whatever speaks it at `baseUrl`, streamed.
 *
 * Nothing is taken from the environment but ANTHROPIC_CUSTOM_HEADERS, which the SDK reads in any case. No traces are
 * recorded: they could hold what a device returned.
 */
export function createAnthropicModel(options: AnthropicOptions): Model {
  const { apiKey, baseUrl = "https://api.anthropic.com", model } = options;
  const limits = turnSettings(options);
  const settings = { model, maxTokens: options.maxTokens ?? 16_384, cache: options.cache ?? true };
  const client = new Anthropic({
    apiKey,
    baseURL: baseUrl,
    webhookKey: null,
    timeout: limits.timeoutMs,
    maxRetries: 0,
    logLevel: "off",
    openTelemetry: false,
  });
  return {
    name: model,
    turn: (request) =>
      takeTurn(request, limits, {
        async once({ onText, ...rest }, names, signal) {
          const stream = await client.messages.create(messagesRequest(rest, names, settings), { signal });
          return turnOf(await readMessage(stream, onText), names, rest.messages);
        },
        failure: (thrown) =>
          failureOf(thrown, ERRORS, (error) => ({ type: error.type, message: error.apiMessage }), apiKey),
      }),
  };
}
