import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { ToolDefinition } from "../toolset/toolset.ts";

/** A language model. The loop knows nothing else of providers. */
export interface Model {
  /** The model's own name, such as "claude-opus-5-5". */
  readonly name: string;
  /**
   * Lets the model take one turn. Throws ModelError; nothing of a turn that failed may be acted on.
   */
  turn(request: TurnRequest): Promise<Turn>;
}

/** What a model takes its turn on. */
export interface TurnRequest {
  /** The system prompt. */
  system: string;
  messages: readonly Message[];
  tools: readonly ToolDefinition[];
  signal: AbortSignal;
  /** Gets the text as it comes. Must not throw. */
  onText: (text: string) => void;
}

/** A message of a conversation. Plain JSON: it can be stored and resumed. */
export type Message =
  | { role: "user"; text: string }
  | { role: "assistant"; text: string; toolUses: readonly ToolUse[]; native: NativeContent }
  /** The answers to every tool use of the assistant message before, in its order. */
  | { role: "tool_results"; results: readonly ToolUseResult[] };

/** A turn as its provider wrote it, given back unchanged: it may hold what only the provider can read. */
export interface NativeContent {
  /** Which adapter it is for, such as "anthropic". Others rebuild the turn from its text and tool uses. */
  provider: string;
  /** Empty where the turn holds nothing that could be given back. */
  content: JsonValue[];
}

/** A model's request to use a tool. */
export interface ToolUse {
  /** Unique within the conversation. */
  id: string;
  /** The tool's own name; where the model made a name up, that name. */
  name: string;
  input: ToolInput;
}

/** What a model wrote as a tool's input: a JSON object, or something else and why it is not one. */
export type ToolInput = { kind: "json"; value: JsonObject } | { kind: "malformed"; problem: string };

/** The answer to a tool use. */
export interface ToolUseResult {
  toolUseId: string;
  /** Not empty. */
  content: string;
  isError: boolean;
}

/** One turn of a model. */
export interface Turn {
  /** All of its text. */
  text: string;
  toolUses: readonly ToolUse[];
  stop: Stop;
  usage: Usage;
  native: NativeContent;
}

/** Why a turn ended. */
export type Stop =
  /** The model was done, with or without tool uses. */
  | { kind: "end" }
  /** The provider paused a long turn: giving the turn back lets it go on. */
  | { kind: "paused" }
  /** It reached the limit of one turn: text and the last tool use may be cut off. */
  | { kind: "max_tokens" }
  /** The conversation does not fit the model any more. */
  | { kind: "context_full" }
  /** The model or its provider refuses to go on. */
  | { kind: "refused"; explanation: string };

/** Tokens. Cached ones are not part of `inputTokens`. */
export interface Usage {
  inputTokens: number;
  outputTokens: number;
  cacheReadTokens: number;
  cacheWriteTokens: number;
  /** What they cost, in millionths of a US dollar. Absent where that is not known. */
  costUsdMicros?: number;
}

/** What went wrong with a model's turn. */
export type ModelErrorKind =
  /** The run's signal was aborted. */
  | "canceled"
  | "timed_out"
  | "unauthenticated"
  | "rate_limited"
  | "overloaded"
  /** The provider refused the request as it is. */
  | "rejected"
  | "unreachable"
  /** The answer was cut off or made no sense. */
  | "broken";

/** A turn that failed. The message is safe to show and holds no key. */
export class ModelError extends Error {
  override readonly name = "ModelError";
  readonly kind: ModelErrorKind;
  /** The HTTP status, where there was an answer. */
  readonly status: number | undefined;

  constructor(kind: ModelErrorKind, message: string, options: { status?: number | undefined; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.kind = kind;
    this.status = options.status;
  }
}
