import type Anthropic from "@anthropic-ai/sdk";
import type { JsonObject } from "@bufbuild/protobuf";

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

/** An end of a connection before the end of a stream. */
export interface Cut {
  /** How many bytes of the answer's body are sent. */
  bytes: number;
  /** Ends the body as if it were complete, in place of breaking the connection. */
  clean: boolean;
}

/** One turn of the model. */
export interface ScriptedTurn {
  text?: Scripted<string>;
  toolUses?: readonly ScriptedToolUse[];
  /** A thinking block before anything else, with a signature. */
  thinking?: string;
  /** What the model looks for with its provider's search for tools, before it uses any. */
  search?: string;
  /** Looks at the conversation; what it throws is kept in `problems` and answered as an error. */
  expect?: (seen: Seen) => void;
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
  /** Where the stream is cut, looked at each time it is played. Default: nowhere. */
  cut?: () => Cut | undefined;
  /** The stream arrives byte by byte, whatever a byte is part of. */
  trickles?: boolean;
  /** Waited for after the last block and before the end of a streamed turn. `closed` is aborted when the client closes. */
  linger?: (closed: AbortSignal) => Promise<void>;
}

/** A turn with every value made. */
export interface PlayedTurn {
  text: string;
  thinking: string;
  search: string | undefined;
  toolUses: readonly { id: string; name: string; json: string; input: JsonObject }[];
  stop: Anthropic.StopReason;
  explanation: string | undefined;
  usage: { input: number; output: number; cacheRead: number; cacheWrite: number };
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
    search: turn.search,
    stop: turn.stop ?? (toolUses.length > 0 ? "tool_use" : "end_turn"),
    explanation: turn.explanation,
    usage: { input, output: output ?? Math.ceil(written / 4), cacheRead, cacheWrite },
  };
}

function made<T extends string | JsonObject>(value: Scripted<T>, seen: Seen): T {
  return typeof value === "function" ? value(seen) : value;
}

/** The characters in one piece of text or JSON. Small and odd, so that pieces end inside words and escapes. */
const PIECE = 7;
/** The most pieces of one block, so that a long text does not become a million events. */
const MAX_PIECES = 400;

/** The pieces that a text is streamed in. */
export function pieces(text: string): string[] {
  const size = Math.max(PIECE, Math.ceil(text.length / MAX_PIECES));
  return Array.from({ length: Math.ceil(text.length / size) }, (_, at) => text.slice(at * size, (at + 1) * size));
}
