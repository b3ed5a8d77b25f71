import type Anthropic from "@anthropic-ai/sdk";
import { ModelError, type Stop, type Usage } from "../model.ts";

/** A content block as it came in. */
export interface StreamedBlock {
  start: Anthropic.ContentBlock;
  /** The pieces of its text, thinking or input. */
  pieces: string[];
  signature: string;
}

/** A message as it came in. */
export interface StreamedMessage {
  id: string;
  blocks: Map<number, StreamedBlock>;
  stop: Stop;
  usage: Usage;
  complete: boolean;
}

/**
 * Gathers the events of one streamed message. The SDK's own accumulator is not used because it completes tool
 * input that was cut off and fails the whole stream for input that is no JSON; here such input is a malformed tool use.
 * Throws ModelError where the stream ends before the message does: half a message is never acted on.
 */
export async function readMessage(
  events: AsyncIterable<Anthropic.RawMessageStreamEvent>,
  onText: (text: string) => void,
): Promise<StreamedMessage> {
  const incoming: StreamedMessage = {
    id: "",
    blocks: new Map(),
    stop: { kind: "end" },
    usage: { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 },
    complete: false,
  };
  for await (const event of events) take(incoming, event, onText);
  if (!incoming.complete) throw new ModelError("broken", "the model's answer was cut off");
  return incoming;
}

function take(incoming: StreamedMessage, event: Anthropic.RawMessageStreamEvent, onText: (text: string) => void): void {
  switch (event.type) {
    case "message_start":
      incoming.id = event.message.id;
      addUsage(incoming.usage, event.message.usage);
      return;
    case "content_block_start":
      incoming.blocks.set(event.index, { start: event.content_block, pieces: [], signature: "" });
      return;
    case "content_block_delta":
      takeDelta(incoming.blocks.get(event.index), event.delta, onText);
      return;
    case "message_delta":
      incoming.stop = stopOf(event.delta);
      addUsage(incoming.usage, event.usage);
      return;
    case "message_stop":
      incoming.complete = true;
      return;
    case "content_block_stop":
      return;
  }
}

function takeDelta(
  block: StreamedBlock | undefined,
  delta: Anthropic.RawContentBlockDelta,
  onText: (text: string) => void,
): void {
  if (block === undefined) throw new ModelError("broken", "the model's answer goes on with a block it never started");
  if (delta.type === "text_delta") {
    block.pieces.push(delta.text);
    onText(delta.text);
  } else if (delta.type === "input_json_delta") block.pieces.push(delta.partial_json);
  else if (delta.type === "thinking_delta") block.pieces.push(delta.thinking);
  else if (delta.type === "signature_delta") block.signature = delta.signature;
}

/** Counts are totals so far: a later one replaces an earlier one, and an absent one says nothing. */
function addUsage(usage: Usage, counts: Anthropic.Usage | Anthropic.MessageDeltaUsage): void {
  usage.inputTokens = counts.input_tokens ?? usage.inputTokens;
  usage.outputTokens = counts.output_tokens ?? usage.outputTokens;
  usage.cacheReadTokens = counts.cache_read_input_tokens ?? usage.cacheReadTokens;
  usage.cacheWriteTokens = counts.cache_creation_input_tokens ?? usage.cacheWriteTokens;
}

function stopOf(delta: Anthropic.RawMessageDeltaEvent.Delta): Stop {
  switch (delta.stop_reason) {
    case "pause_turn":
      return { kind: "paused" };
    case "max_tokens":
      return { kind: "max_tokens" };
    case "model_context_window_exceeded":
      return { kind: "context_full" };
    case "refusal":
      return { kind: "refused", explanation: delta.stop_details?.explanation ?? "the provider gave no explanation" };
    default:
      return { kind: "end" };
  }
}
