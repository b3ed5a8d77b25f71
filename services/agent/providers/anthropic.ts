import { setTimeout as sleep } from "node:timers/promises";
import Anthropic from "@anthropic-ai/sdk";
import { ConnectError } from "@connectrpc/connect";
import { createNameMap, type NameMap } from "../../../lib/model-tools/names.ts";
import { modelError, timedOut } from "./anthropic-error.ts";
import { messagesRequest } from "./anthropic-request.ts";
import { readMessage } from "./anthropic-stream.ts";
import { turnOf } from "./anthropic-turn.ts";
import { type Model, ModelError, type ModelProvider, type Turn, type TurnRequest } from "./model.ts";

/** The model that the SDK's own examples use. */
const DEFAULT_MODEL: Anthropic.Model = "claude-opus-5-5";

/** How to reach a model of Anthropic's. */
export interface AnthropicOptions {
  /** Required. Sent as a bearer token. */
  apiKey: string;
  /** Where the Messages API is. Default https://api.anthropic.com. */
  baseUrl?: string;
  /** Default: the provider's default model. */
  model?: string;
  /** The most tokens of one turn, thinking included. Default 16384. */
  maxTokens?: number;
  /** The longest one turn may take with all its tries, in milliseconds. Default 600000. */
  timeoutMs?: number;
  /** How often a turn is tried again that failed before any text came. Default 2. */
  maxRetries?: number;
  /** Mark the system prompt, the tools and the conversation for the provider's cache. Default true. */
  cache?: boolean;
}

/**
 * A model behind Anthropic's Messages API, or whatever speaks it at `baseUrl`, streamed. The SDK tries again what was
 * refused for now (408, 409, 429, 5xx) with the pauses that the answer names; a stream that breaks before any text came is tried
 * again here, because nothing of it has been shown or acted on.
 *
 * Nothing is taken from the environment but ANTHROPIC_CUSTOM_HEADERS, which the SDK reads in any case. No traces are
 * recorded: they could hold what a device returned.
 */
export function createAnthropicModel(options: AnthropicOptions): Model {
  const settings = {
    model: options.model ?? DEFAULT_MODEL,
    maxTokens: options.maxTokens ?? 16_384,
    cache: options.cache ?? true,
  };
  const { timeoutMs = 600_000, maxRetries = 2 } = options;
  const client = new Anthropic({
    apiKey: options.apiKey,
    baseURL: options.baseUrl ?? "https://api.anthropic.com",
    webhookKey: null,
    timeout: timeoutMs,
    maxRetries,
    logLevel: "off",
    openTelemetry: false,
  });

  const once = async (request: TurnRequest, names: NameMap, signal: AbortSignal): Promise<Turn> => {
    const stream = await client.messages.create(messagesRequest(request, names, settings), { signal });
    return turnOf(await readMessage(stream, request.onText), names);
  };

  return {
    name: settings.model,
    async turn(request) {
      const names = namesOf(request);
      const deadline = AbortSignal.timeout(timeoutMs);
      const signal = AbortSignal.any([request.signal, deadline]);
      for (let retry = 0; ; retry++) {
        let spoke = false;
        const onText = (text: string): void => {
          spoke = true;
          request.onText(text);
        };
        try {
          return await once({ ...request, onText }, names, signal);
        } catch (thrown: unknown) {
          const late = deadline.aborted && !request.signal.aborted;
          const error = late ? timedOut(timeoutMs, thrown) : modelError(thrown, request.signal, timeoutMs);
          if (spoke || retry >= maxRetries || !brokeMidway(error)) throw error;
          await sleep(250 * 2 ** retry, undefined, { signal }).catch(() => undefined);
        }
      }
    },
  };
}

/** Anthropic's models. */
export const anthropic: ModelProvider = {
  keyVariable: "ANTHROPIC_API_KEY",
  urlVariable: "ANTHROPIC_BASE_URL",
  defaultModel: DEFAULT_MODEL,
  createModel: createAnthropicModel,
};

function namesOf(request: TurnRequest): NameMap {
  try {
    return createNameMap(request.tools.map((tool) => tool.name));
  } catch (cause: unknown) {
    throw new ModelError("rejected", ConnectError.from(cause).rawMessage, { cause });
  }
}

/** True for a stream that failed after it had begun: what failed before has a status and was tried again by the SDK. */
function brokeMidway(error: ModelError): boolean {
  return error.status === undefined && (error.kind === "broken" || error.kind === "overloaded");
}
