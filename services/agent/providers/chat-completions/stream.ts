import type { ChatCompletionChunk } from "openai/resources/chat/completions";
import { ModelError, type Stop, type Usage } from "../model.ts";

/** A use of a tool as it came in. */
export interface StreamedUse {
  index: number | undefined;
  id: string;
  name: string;
  /** The pieces of its input. */
  pieces: string[];
}

/** A turn as it came in. */
export interface StreamedTurn {
  id: string;
  pieces: string[];
  uses: StreamedUse[];
  /** Undefined where the server sent none: some never do. */
  usage: Usage | undefined;
  stop: Stop;
}

interface Incoming extends Omit<StreamedTurn, "stop"> {
  refusal: string;
  finish: string | undefined;
}

/** What a chunk may hold, whichever server sent it: the SDK parses JSON and checks nothing. */
type Loose<T> = T extends (infer I)[]
  ? Loose<I>[] | null | undefined
  : T extends object
    ? { [K in keyof T]?: Loose<T[K]> | null | undefined }
    : T | null | undefined;

type Chunk = NonNullable<Loose<ChatCompletionChunk>>;
type Delta = NonNullable<Loose<ChatCompletionChunk.Choice.Delta>>;

/**
 * Gathers the chunks of one streamed turn, as OpenAI, Ollama, vLLM and llama.cpp send them. The SDK's own accumulator is
 * not used: it glues Ollama's calls together, which all have index 0, and hands over input that was cut off.
 * Throws ModelError where the stream ends without a reason for its end: half a turn is never acted on.
 */
export async function readChunks(
  chunks: AsyncIterable<ChatCompletionChunk>,
  onText: (text: string) => void,
): Promise<StreamedTurn> {
  const incoming: Incoming = { id: "", pieces: [], uses: [], usage: undefined, refusal: "", finish: undefined };
  for await (const chunk of chunks) take(incoming, chunk, onText);
  const { refusal, finish, ...turn } = incoming;
  return { ...turn, stop: stopOf(finish, refusal) };
}

function take(incoming: Incoming, chunk: Chunk, onText: (text: string) => void): void {
  incoming.id ||= textOf(chunk.id);
  if (chunk.usage) incoming.usage = usageOf(chunk.usage);
  // One choice is asked for. The chunk with the usage has none.
  for (const choice of chunk.choices ?? []) {
    takeDelta(incoming, choice?.delta ?? {}, onText);
    if (choice?.finish_reason) incoming.finish = choice.finish_reason;
  }
}

function takeDelta(incoming: Incoming, delta: Delta, onText: (text: string) => void): void {
  const content = textOf(delta.content);
  const calls = delta.tool_calls ?? [];
  if (incoming.finish !== undefined && (content !== "" || calls.length > 0)) {
    throw new ModelError("broken", "the model's answer goes on after its end");
  }
  if (content !== "") {
    incoming.pieces.push(content);
    onText(content);
  }
  incoming.refusal += textOf(delta.refusal);
  for (const call of calls) if (call) takeUse(incoming.uses, call);
}

function takeUse(uses: StreamedUse[], delta: NonNullable<Loose<ChatCompletionChunk.Choice.Delta.ToolCall>>): void {
  const id = textOf(delta.id);
  const name = textOf(delta.function?.name);
  const index = delta.index ?? undefined;
  let use = uses.findLast((one) => one.index === index);
  // Another id is another use, whatever its index.
  if (use === undefined || (id !== "" && use.id !== "" && id !== use.id)) {
    use = { index, id, name, pieces: [] };
    uses.push(use);
  }
  use.id ||= id;
  use.name ||= name;
  // Half a name may be another tool's name.
  if (name !== "" && name !== use.name) throw new ModelError("broken", "the model's answer renames a tool use");
  use.pieces.push(textOf(delta.function?.arguments));
}

/** Cached tokens are part of what this API calls prompt tokens. */
function usageOf(usage: NonNullable<Chunk["usage"]>): Usage {
  const cacheReadTokens = countOf(usage.prompt_tokens_details?.cached_tokens);
  const cacheWriteTokens = countOf(usage.prompt_tokens_details?.cache_write_tokens);
  return {
    inputTokens: Math.max(0, countOf(usage.prompt_tokens) - cacheReadTokens - cacheWriteTokens),
    outputTokens: countOf(usage.completion_tokens),
    cacheReadTokens,
    cacheWriteTokens,
  };
}

function stopOf(finish: string | undefined, refusal: string): Stop {
  if (finish === undefined) throw new ModelError("broken", "the model's answer was cut off");
  if (refusal !== "") return { kind: "refused", explanation: refusal };
  switch (finish) {
    // Ollama says "stop" with tool uses, others "tool_calls": the uses themselves count.
    case "stop":
    case "tool_calls":
      return { kind: "end" };
    case "length":
      return { kind: "max_tokens" };
    case "content_filter":
      return { kind: "refused", explanation: "the provider's content filter stopped it" };
    default:
      throw new ModelError("broken", `the model's answer ended with ${JSON.stringify(finish.slice(0, 40))}`);
  }
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function countOf(value: unknown): number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : 0;
}
