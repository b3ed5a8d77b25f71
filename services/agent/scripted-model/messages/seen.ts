import type Anthropic from "@anthropic-ai/sdk";
import type { SeenResult } from "../script.ts";

/** The body of a request to the Messages API, after it was checked. */
export type MessagesRequest = Anthropic.MessageCreateParams;

/** Which turn of a script a request asks for, from 0: one for each assistant message it holds. */
export function turnIndex(request: MessagesRequest): number {
  return request.messages.filter((message) => message.role === "assistant").length;
}

/** Every tool result of a conversation, in order. */
export function resultsIn(request: MessagesRequest): SeenResult[] {
  const blocks = request.messages.flatMap(({ content }) => (typeof content === "string" ? [] : content));
  const uses = new Map(blocks.flatMap((block) => (block.type === "tool_use" ? [[block.id, block] as const] : [])));
  return blocks.flatMap((block) => {
    const use = block.type === "tool_result" ? uses.get(block.tool_use_id) : undefined;
    if (block.type !== "tool_result" || use === undefined) return [];
    return [{ name: use.name, input: use.input, isError: block.is_error ?? false, content: textOf(block.content) }];
  });
}

function textOf(content: Anthropic.ToolResultBlockParam["content"]): string {
  if (typeof content === "string") return content;
  return (content ?? []).map((block) => (block.type === "text" ? block.text : "")).join("");
}
