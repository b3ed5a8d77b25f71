import type Anthropic from "@anthropic-ai/sdk";
import type { JsonObject } from "@bufbuild/protobuf";

/** The body of a request to the Messages API, after it was checked. */
export type MessagesRequest = Anthropic.MessageCreateParams;

/** An answer to a tool use earlier in the conversation. */
export interface SeenResult {
  /** The tool's name, as the provider knows it. */
  name: string;
  input: unknown;
  isError: boolean;
  /** What the model was given. */
  content: string;
}

/** What a scripted turn can look at. */
export interface Seen {
  request: MessagesRequest;
  /** Every tool result of the conversation, in order. */
  results: readonly SeenResult[];
}

/** A value, or how to make it from what was seen. */
export type Scripted<T> = T | ((seen: Seen) => T);

/** A tool use of a scripted turn. */
export interface ScriptedToolUse {
  /** The provider's name of the tool, such as "fs_read". */
  name: string;
  /** The input. A text is sent as it is, in place of JSON, so that it can be broken. */
  input: Scripted<JsonObject | string>;
  /** Default: a new one. */
  id?: string;
}

/** An error that is answered in place of a turn. */
export interface ScriptedFailure {
  status: number;
  /** The error's type, such as "overloaded_error". */
  type: string;
  message?: string;
  headers?: Record<string, string>;
}

/** One turn of the model. */
export interface ScriptedTurn {
  text?: Scripted<string>;
  toolUses?: readonly ScriptedToolUse[];
  /** A thinking block before anything else, with a signature. */
  thinking?: string;
  /** Looks at the request; what it throws is kept in `problems` and answered as an error. */
  expect?: (request: MessagesRequest) => void;
  /** Default "tool_use" where there are tool uses, else "end_turn". */
  stop?: Anthropic.StopReason;
  /** Why it refuses, with stop "refusal". */
  explanation?: string;
  /** Default 100 of input and a token for 4 characters of output. */
  usage?: { input?: number; output?: number; cacheRead?: number; cacheWrite?: number };
  /** Errors that are answered, in order, before the turn is played. */
  failures?: readonly ScriptedFailure[];
  /** How often the stream is cut off before its end, before the turn is played whole. Default 0. */
  breaks?: number;
  /** Waited for after the last block and before the end of a streamed turn. `closed` is aborted when the client closes. */
  linger?: (closed: AbortSignal) => Promise<void>;
}

/** A turn with every value made. */
export interface PlayedTurn {
  text: string;
  thinking: string;
  toolUses: readonly { id: string; name: string; json: string; input: JsonObject }[];
  stop: Anthropic.StopReason;
  explanation: string | undefined;
  usage: { input: number; output: number; cacheRead: number; cacheWrite: number };
}

/** Which turn of a script a request asks for, from 0: one for each assistant message it holds. */
export function turnIndex(request: MessagesRequest): number {
  return request.messages.filter((message) => message.role === "assistant").length;
}

/** What a scripted turn can see of a request. */
export function seenIn(request: MessagesRequest): Seen {
  const blocks = request.messages.flatMap(({ content }) => (typeof content === "string" ? [] : content));
  const uses = new Map(blocks.flatMap((block) => (block.type === "tool_use" ? [[block.id, block] as const] : [])));
  const results = blocks.flatMap((block) => {
    const use = block.type === "tool_result" ? uses.get(block.tool_use_id) : undefined;
    if (block.type !== "tool_result" || use === undefined) return [];
    return [{ name: use.name, input: use.input, isError: block.is_error ?? false, content: textOf(block.content) }];
  });
  return { request, results };
}

/** Makes every value of a turn. */
export function playTurn(turn: ScriptedTurn, seen: Seen, newId: () => string): PlayedTurn {
  const text = made(turn.text ?? "", seen);
  const toolUses = (turn.toolUses ?? []).map((use) => {
    const input = made(use.input, seen);
    const isText = typeof input === "string";
    return {
      id: use.id ?? newId(),
      name: use.name,
      json: isText ? input : JSON.stringify(input),
      input: isText ? {} : input,
    };
  });
  const { input = 100, output, cacheRead = 0, cacheWrite = 0 } = turn.usage ?? {};
  const written = text.length + toolUses.reduce((sum, use) => sum + use.json.length, 0);
  return {
    text,
    toolUses,
    thinking: turn.thinking ?? "",
    stop: turn.stop ?? (toolUses.length > 0 ? "tool_use" : "end_turn"),
    explanation: turn.explanation,
    usage: { input, output: output ?? Math.ceil(written / 4), cacheRead, cacheWrite },
  };
}

function made<T extends string | JsonObject>(value: Scripted<T>, seen: Seen): T {
  return typeof value === "function" ? value(seen) : value;
}

function textOf(content: Anthropic.ToolResultBlockParam["content"]): string {
  if (typeof content === "string") return content;
  return (content ?? []).map((block) => (block.type === "text" ? block.text : "")).join("");
}
