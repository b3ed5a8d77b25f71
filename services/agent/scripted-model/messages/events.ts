import type Anthropic from "@anthropic-ai/sdk";
import { type PlayedTurn, pieces } from "../script.ts";
import { SEARCH, searchTools } from "./search.ts";
import type { MessagesRequest } from "./seen.ts";

/** An event of a streamed message, or the ping that keeps a connection alive. */
export type StreamEvent = Anthropic.RawMessageStreamEvent | { type: "ping" };

/** A message as it is answered without streaming. */
export function wholeMessage(turn: PlayedTurn, id: string, model: string): Anthropic.Message {
  const content: object[] = [
    ...(turn.thinking === "" ? [] : [{ type: "thinking", thinking: turn.thinking, signature: signatureOf(turn) }]),
    ...(turn.text === "" ? [] : [{ type: "text", text: turn.text, citations: null }]),
    ...turn.toolUses.map(({ id: useId, name, input }) => ({
      type: "tool_use",
      id: useId,
      name,
      input,
      caller: DIRECT,
    })),
  ];
  const { stop_reason, stop_sequence, stop_details } = ending(turn);
  return { ...emptyMessage(turn, id, model), content, stop_reason, stop_sequence, stop_details } as Anthropic.Message;
}

/**
 * The events of a streamed message, in the order of the API: message_start, each block's start, deltas and stop, one
 * ping, message_delta with the reason and the usage, message_stop.
 */
export function* streamEvents(
  turn: PlayedTurn,
  { model, tools }: MessagesRequest,
  id: string,
): Generator<StreamEvent, void, void> {
  const message = { ...emptyMessage(turn, id, model), usage: usageOf(turn, 1) } as Anthropic.Message;
  yield { type: "message_start", message };
  yield { type: "ping" };
  let index = 0;
  if (turn.thinking !== "") yield* thinkingEvents(turn, index++);
  if (turn.text !== "") {
    yield { type: "content_block_start", index, content_block: { type: "text", text: "", citations: null } };
    for (const text of pieces(turn.text))
      yield { type: "content_block_delta", index, delta: { type: "text_delta", text } };
    yield { type: "content_block_stop", index: index++ };
  }
  if (turn.search !== undefined) {
    const search = {
      type: "server_tool_use",
      id: `srv${id}`,
      name: SEARCH,
      json: JSON.stringify({ query: turn.search }),
    };
    yield* toolUseEvents(search, index++);
    yield* foundEvents(search.id, searchTools(turn.search, tools), index++);
  }
  for (const use of turn.toolUses) yield* toolUseEvents({ type: "tool_use", ...use }, index++);
  yield { type: "message_delta", delta: ending(turn), usage: usageOf(turn, turn.usage.output) };
  yield { type: "message_stop" };
}

const DIRECT = { type: "direct" } as const;

function* thinkingEvents(turn: PlayedTurn, index: number): Generator<StreamEvent, void, void> {
  yield { type: "content_block_start", index, content_block: { type: "thinking", thinking: "", signature: "" } };
  for (const thinking of pieces(turn.thinking)) {
    yield { type: "content_block_delta", index, delta: { type: "thinking_delta", thinking } };
  }
  yield { type: "content_block_delta", index, delta: { type: "signature_delta", signature: signatureOf(turn) } };
  yield { type: "content_block_stop", index };
}

function* toolUseEvents(
  { type, id, name, json }: { type: string; id: string; name: string; json: string },
  index: number,
): Generator<StreamEvent, void, void> {
  const block = { type, id, name, input: {}, caller: DIRECT } as Anthropic.ToolUseBlock | Anthropic.ServerToolUseBlock;
  yield { type: "content_block_start", index, content_block: block };
  for (const partial_json of ["", ...pieces(json)]) {
    yield { type: "content_block_delta", index, delta: { type: "input_json_delta", partial_json } };
  }
  yield { type: "content_block_stop", index };
}

function* foundEvents(id: string, names: readonly string[], index: number): Generator<StreamEvent, void, void> {
  const tool_references = names.map((tool_name) => ({ type: "tool_reference" as const, tool_name }));
  const content = { type: "tool_search_tool_search_result" as const, tool_references };
  const content_block = { type: "tool_search_tool_result" as const, tool_use_id: id, content };
  yield { type: "content_block_start", index, content_block };
  yield { type: "content_block_stop", index };
}

function signatureOf(turn: PlayedTurn): string {
  return Buffer.from(turn.thinking).toString("base64");
}

function emptyMessage(turn: PlayedTurn, id: string, model: string): object {
  return {
    id,
    type: "message",
    role: "assistant",
    model,
    content: [],
    container: null,
    diagnostics: null,
    stop_reason: null,
    stop_sequence: null,
    stop_details: null,
    usage: usageOf(turn, turn.usage.output),
  };
}

function ending(turn: PlayedTurn): Anthropic.RawMessageDeltaEvent.Delta {
  const refusal = { type: "refusal", category: null, explanation: turn.explanation ?? null } as const;
  return {
    container: null,
    stop_reason: turn.stop,
    stop_sequence: null,
    stop_details: turn.stop === "refusal" ? refusal : null,
  };
}

function usageOf(turn: PlayedTurn, output: number): Anthropic.MessageDeltaUsage {
  return {
    input_tokens: turn.usage.input,
    output_tokens: output,
    cache_read_input_tokens: turn.usage.cacheRead,
    cache_creation_input_tokens: turn.usage.cacheWrite,
    output_tokens_details: null,
    server_tool_use: null,
  };
}
