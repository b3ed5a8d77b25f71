import type { ServerKind } from "./chat-completions/server-kind.ts";
import { LLAMACPP, OLLAMA, OPENAI, VLLM } from "./chat-completions/server-kind.ts";
import type { Model } from "./model.ts";
import { ollamaUrl } from "./ollama-host.ts";
import type { Price } from "./prices.ts";

/** What a model of a provider is made of. */
export interface ProviderSettings {
  apiKey: string;
  baseUrl: string;
  model: string;
  prices: readonly Price[];
}

/** Where models come from. */
export interface ModelProvider {
  /** What stands before the model's own name: "anthropic" in "anthropic/claude-opus-5-5". */
  readonly name: string;
  /** The environment variable that holds its key. */
  readonly keyVariable: string;
  /** Whether it answers only with a key. One that does not runs on a machine of the person's own, and is used where it is named. */
  readonly needsKey: boolean;
  /** The environment variable that holds its address, where it is not `url`. */
  readonly urlVariable: string;
  readonly url: string;
  /** The address in what `urlVariable` holds; undefined where that is no address. Default: as it stands. */
  readonly toUrl?: (text: string) => string | undefined;
  /** The model where none is named. Absent: there is no such model. */
  readonly defaultModel?: string;
  /** Loads the provider's SDK, which takes a while, and nothing else does. */
  createModel(settings: ProviderSettings): Promise<Model>;
}

const chatModel = (kind: ServerKind) => async (settings: ProviderSettings) =>
  (await import("./chat-completions/adapter.ts")).createChatModel({ ...settings, kind });

/** Every provider of models, the preferred one first. A new one is a line here, and an adapter where it speaks an API of its own. */
export const PROVIDERS: readonly [ModelProvider, ...ModelProvider[]] = [
  {
    name: "anthropic",
    keyVariable: "ANTHROPIC_API_KEY",
    needsKey: true,
    urlVariable: "ANTHROPIC_BASE_URL",
    url: "https://api.anthropic.com",
    // Of this and of OpenAI's: the model that the SDK's own examples use.
    defaultModel: "claude-opus-5-5",
    createModel: async (settings) => (await import("./anthropic/adapter.ts")).createAnthropicModel(settings),
  },
  {
    name: "openai",
    keyVariable: "OPENAI_API_KEY",
    needsKey: true,
    urlVariable: "OPENAI_BASE_URL",
    url: "https://api.openai.com/v1",
    defaultModel: "gpt-5.5",
    createModel: chatModel(OPENAI),
  },
  {
    name: "ollama",
    keyVariable: "OLLAMA_API_KEY",
    needsKey: false,
    urlVariable: "OLLAMA_HOST",
    url: "http://127.0.0.1:11434/v1",
    toUrl: (host) => withVersion(ollamaUrl(host)),
    createModel: chatModel(OLLAMA),
  },
  {
    name: "vllm",
    keyVariable: "VLLM_API_KEY",
    needsKey: false,
    urlVariable: "VLLM_BASE_URL",
    url: "http://127.0.0.1:8000/v1",
    toUrl: withVersion,
    createModel: chatModel(VLLM),
  },
  {
    name: "llamacpp",
    keyVariable: "LLAMA_API_KEY",
    needsKey: false,
    urlVariable: "LLAMACPP_BASE_URL",
    url: "http://127.0.0.1:8080/v1",
    toUrl: withVersion,
    createModel: chatModel(LLAMACPP),
  },
];

/** A local server's address with the API's path, where it has none. */
function withVersion(text: string | undefined): string | undefined {
  if (text === undefined || !URL.canParse(text)) return undefined;
  const url = new URL(text);
  return url.pathname === "/" ? new URL("/v1", url).href : text;
}
