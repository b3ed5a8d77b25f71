/**
 * How a server of the Chat Completions API differs in what it takes. What it sends needs no such list: the reader takes
 * all of it.
 */
export interface ServerKind {
  /** Its name in native content: reasoning and ids of one kind are of no use to another. */
  readonly name: string;
  /** The field for the most tokens of one turn, and how many by default. Absent: the server's own limit. */
  readonly maxTokens: { field: "max_completion_tokens" | "max_tokens"; byDefault?: number };
  /** Generates input that keeps to the schema where a tool is marked strict. */
  readonly strict: boolean;
  /** Further fields of every request with tools. */
  readonly withTools: Readonly<Record<string, boolean>>;
}

const local = { maxTokens: { field: "max_tokens" }, strict: false, withTools: {} } as const;

/** OpenAI itself, and what claims to be it. */
export const OPENAI: ServerKind = {
  name: "openai",
  maxTokens: { field: "max_completion_tokens", byDefault: 16_384 },
  strict: true,
  withTools: {},
};

/** Ollama (https://docs.ollama.com/api/openai-compatibility). */
export const OLLAMA: ServerKind = { ...local, name: "ollama" };

/** vLLM (https://docs.vllm.ai/en/latest/serving/openai_compatible_server). */
export const VLLM: ServerKind = { ...local, name: "vllm" };

/** llama.cpp's llama-server, which calls one tool at a time unless it is asked for more (its docs/function-calling.md). */
export const LLAMACPP: ServerKind = { ...local, name: "llamacpp", withTools: { parallel_tool_calls: true } };
