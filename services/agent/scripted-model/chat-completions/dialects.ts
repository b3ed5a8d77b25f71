import type { JsonObject } from "@bufbuild/protobuf";
import { LLAMACPP, OLLAMA, OPENAI, type ServerKind, VLLM } from "../../providers/chat-completions/server-kind.ts";

/** How a server of the Chat Completions API streams a turn: what differs between those that there are. */
export interface Dialect {
  readonly kind: ServerKind;
  /** It answers nothing without a key. */
  readonly needsKey: boolean;
  /** What a made id of a tool use begins with. */
  readonly useIdKind: string;
  /** Fields of every chunk besides those that all servers send. */
  readonly chunk: JsonObject;
  /** Fields of every choice besides those that all servers send. */
  readonly choice: JsonObject;
  /** A first chunk without content. */
  readonly first?: JsonObject;
  /** Fields of every delta. */
  readonly delta: JsonObject;
  /** The delta beside the reason for the end. */
  readonly last: JsonObject;
  /** The field of reasoning; absent where it is not shown. */
  readonly reasoning?: string;
  /** Tool uses come in pieces, or each in one. */
  readonly uses: "pieces" | "whole";
  /** What the index of a tool use is. */
  readonly index: "counted" | "zero";
  /** The reason for the end of a turn with tool uses. */
  readonly finishWithUses: "tool_calls" | "stop";
  /** A model refuses in a field of its own; elsewhere only a filter does, as the reason for the end. */
  readonly refuses: boolean;
  /** The last chunk's fields besides the counts; absent: no usage is sent, whatever was asked for. */
  readonly usage?: JsonObject;
  /** A comment between chunks that keeps the connection alive. */
  readonly comment?: string;
  /** An error's type and code. */
  error(status: number, type: string): JsonObject;
}

/** OpenAI (https://platform.openai.com/docs/api-reference/chat-streaming). */
export const OPENAI_DIALECT: Dialect = {
  kind: OPENAI,
  needsKey: true,
  useIdKind: "call",
  chunk: { service_tier: "default", system_fingerprint: "fp_1", usage: null, obfuscation: "Xq1" },
  choice: { logprobs: null },
  first: { role: "assistant", content: "", refusal: null },
  delta: {},
  last: {},
  uses: "pieces",
  index: "counted",
  finishWithUses: "tool_calls",
  refuses: true,
  usage: { completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0 } },
  error: (status, type) => ({ type, param: null, code: status === 401 ? "invalid_api_key" : null }),
};

/** Ollama: each use whole and at index 0 (ollama#15457), and the end of every turn is "stop". */
export const OLLAMA_DIALECT: Dialect = {
  kind: OLLAMA,
  needsKey: false,
  useIdKind: "call",
  chunk: { system_fingerprint: "fp_ollama" },
  choice: {},
  delta: { role: "assistant", content: "" },
  last: {},
  reasoning: "reasoning",
  uses: "whole",
  index: "zero",
  finishWithUses: "stop",
  refuses: false,
  usage: {},
  error: (_status, type) => ({ type, param: null, code: null }),
};

/** vLLM with a parser for tool calls. */
export const VLLM_DIALECT: Dialect = {
  kind: VLLM,
  needsKey: false,
  useIdKind: "chatcmpl-tool",
  chunk: { prompt_token_ids: null },
  choice: { logprobs: null, token_ids: null },
  first: { role: "assistant", content: "" },
  delta: {},
  last: { content: "" },
  reasoning: "reasoning_content",
  uses: "pieces",
  index: "counted",
  finishWithUses: "tool_calls",
  refuses: false,
  usage: { prompt_tokens_details: null },
  error: (status, type) => ({ type, param: null, code: status }),
};

/** llama.cpp's llama-server with --jinja. */
export const LLAMACPP_DIALECT: Dialect = {
  kind: LLAMACPP,
  needsKey: false,
  useIdKind: "",
  chunk: { system_fingerprint: "b7000" },
  choice: {},
  first: { role: "assistant", content: null },
  delta: {},
  last: {},
  reasoning: "reasoning_content",
  uses: "pieces",
  index: "counted",
  finishWithUses: "tool_calls",
  refuses: false,
  usage: {},
  comment: ":\n\n",
  error: (status, type) => ({ type, code: status }),
};

/** Every dialect. */
export const DIALECTS: readonly Dialect[] = [OPENAI_DIALECT, OLLAMA_DIALECT, VLLM_DIALECT, LLAMACPP_DIALECT];
