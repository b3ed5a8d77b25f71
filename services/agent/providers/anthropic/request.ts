import type Anthropic from "@anthropic-ai/sdk";
import type { NameMap } from "../../../../lib/model-tools/names.ts";
import type { Message, ToolUse, TurnRequest } from "../model.ts";
import { nameToEcho } from "../tool-use.ts";
import { toolParams } from "./tools.ts";

/** The name of this adapter in native content. */
export const PROVIDER = "anthropic";

/** What a request is made with besides the conversation. */
export interface RequestSettings {
  model: string;
  /** The most tokens of one turn. */
  maxTokens: number;
  /** Whether to mark what the provider may cache. */
  cache: boolean;
}

/** The body of a streaming Messages API request (https://platform.claude.com/docs/en/api/messages). */
export function messagesRequest(
  request: Pick<TurnRequest, "system" | "messages" | "tools">,
  names: NameMap,
  settings: RequestSettings,
): Anthropic.MessageCreateParamsStreaming {
  // Three marks of the four that a request may have: what never changes in a run, and the conversation so far.
  const mark = settings.cache ? { cache_control: { type: "ephemeral" } as const } : {};
  const tools = toolParams(request.tools, names, mark);
  const messages = messageParams(request.messages, names);
  const block = lastBlock(messages);
  if (block !== undefined) Object.assign(block, mark);
  return {
    model: settings.model,
    max_tokens: settings.maxTokens,
    stream: true,
    messages,
    ...(request.system === "" ? {} : { system: [{ type: "text", text: request.system, ...mark }] }),
    ...(tools.length === 0 ? {} : { tools }),
  };
}

type BlockMessage = { role: "user" | "assistant"; content: Anthropic.ContentBlockParam[] };

/** Messages that follow each other in one role are one message: answers to tool uses and a new question, for one. */
function messageParams(messages: readonly Message[], names: NameMap): BlockMessage[] {
  const params: BlockMessage[] = [];
  for (const message of messages) {
    const role = message.role === "assistant" ? "assistant" : "user";
    const content = blocksOf(message, names);
    const last = params.at(-1);
    if (content.length === 0) continue;
    if (last?.role === role) last.content.push(...content);
    else params.push({ role, content });
  }
  return params;
}

function blocksOf(message: Message, names: NameMap): Anthropic.ContentBlockParam[] {
  switch (message.role) {
    case "user":
      return textBlocks(message.text);
    case "tool_results":
      return message.results.map((result) => ({
        type: "tool_result",
        tool_use_id: result.toolUseId,
        content: result.content.toWellFormed(),
        is_error: result.isError,
      }));
    case "assistant":
      if (message.native.provider === PROVIDER) {
        // Copied, because the last block of a request is marked in place.
        return structuredClone(message.native.content) as unknown as Anthropic.ContentBlockParam[];
      }
      return [...textBlocks(message.text), ...message.toolUses.map((use) => toolUseBlock(use, names))];
  }
}

function toolUseBlock(use: ToolUse, names: NameMap): Anthropic.ToolUseBlockParam {
  return {
    type: "tool_use",
    id: use.id,
    name: nameToEcho(use.name, names),
    input: use.input.kind === "json" ? use.input.value : {},
  };
}

/** The API refuses text blocks without anything but white space. */
function textBlocks(text: string): Anthropic.TextBlockParam[] {
  return text.trim() === "" ? [] : [{ type: "text", text: text.toWellFormed() }];
}

/** The last block of the conversation, unless it is one that cannot be marked. */
function lastBlock(messages: readonly BlockMessage[]): object | undefined {
  const block = messages.at(-1)?.content.at(-1);
  return block?.type === "thinking" || block?.type === "redacted_thinking" ? undefined : block;
}
