import type Anthropic from "@anthropic-ai/sdk";
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { type PlayedTurn, pieces } from "../script.ts";
import type { StreamPart } from "../wire-format.ts";
import type { Dialect } from "./dialects.ts";

/** A tool use as a delta holds it. */
type UseDelta = { index: number; id?: string; type?: "function"; function: { name?: string; arguments?: string } };

/**
 * A turn as the dialect's server streams it: a first chunk, reasoning, text, tool uses, the reason for the end, the usage
 * where it was asked for, and the mark of the end.
 */
export function* chunkParts(
  turn: PlayedTurn,
  dialect: Dialect,
  { id, model, usage }: { id: string; model: string; usage: boolean },
): Generator<StreamPart, void, void> {
  const all = { id, object: "chat.completion.chunk", created: 1_790_000_000, model, ...dialect.chunk };
  const chunk = (delta: JsonObject, finish: string | null = null, isContent = false): StreamPart => {
    const choices = [{ index: 0, delta: { ...dialect.delta, ...delta }, ...dialect.choice, finish_reason: finish }];
    return partOf({ ...all, choices }, isContent, finish !== null);
  };
  if (dialect.first !== undefined) yield chunk(dialect.first);
  if (dialect.comment !== undefined) yield { text: dialect.comment, isContent: false, isEnd: false };
  const { reasoning } = dialect;
  if (reasoning !== undefined) for (const text of pieces(turn.thinking)) yield chunk({ [reasoning]: text });
  for (const content of pieces(turn.text)) yield chunk({ content }, null, true);
  for (const [at, use] of turn.toolUses.entries()) {
    for (const delta of useDeltas(use, dialect.index === "zero" ? 0 : at, dialect)) {
      yield chunk({ tool_calls: [delta as unknown as JsonObject] }, null, true);
    }
  }
  const refusal = dialect.refuses && turn.stop === "refusal";
  if (refusal) yield chunk({ refusal: turn.explanation ?? "no" });
  yield chunk(dialect.last, refusal ? "stop" : finishOf(turn.stop, dialect));
  if (usage && dialect.usage !== undefined) yield partOf({ ...all, choices: [], usage: usageOf(turn, dialect.usage) });
  yield { text: "data: [DONE]\n\n", isContent: false, isEnd: false };
}

function* useDeltas({ id, name, json }: PlayedTurn["toolUses"][number], index: number, { uses }: Dialect) {
  if (uses === "whole") {
    yield { index, id, type: "function", function: { name, arguments: json } } satisfies UseDelta;
    return;
  }
  yield { index, id, type: "function", function: { name, arguments: "" } } satisfies UseDelta;
  for (const piece of pieces(json)) yield { index, function: { arguments: piece } } satisfies UseDelta;
}

function finishOf(stop: Anthropic.StopReason, { finishWithUses }: Dialect): string {
  switch (stop) {
    case "tool_use":
      return finishWithUses;
    case "max_tokens":
      return "length";
    case "refusal":
      return "content_filter";
    case "end_turn":
      return "stop";
    default:
      throw new TypeError(`this API has no ${stop}`);
  }
}

/** Prompt tokens hold the cached ones here. */
function usageOf({ usage }: PlayedTurn, more: JsonObject): JsonObject {
  const prompt_tokens = usage.input + usage.cacheRead + usage.cacheWrite;
  const cached = { cached_tokens: usage.cacheRead, cache_write_tokens: usage.cacheWrite };
  return {
    prompt_tokens,
    completion_tokens: usage.output,
    total_tokens: prompt_tokens + usage.output,
    ...(usage.cacheRead + usage.cacheWrite > 0 ? { prompt_tokens_details: cached } : {}),
    ...more,
  };
}

function partOf(data: JsonValue, isContent = false, isEnd = false): StreamPart {
  return { text: `data: ${JSON.stringify(data)}\n\n`, isContent, isEnd };
}
