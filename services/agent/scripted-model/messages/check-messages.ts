import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { PROVIDER_NAME } from "../../../../lib/model-tools/names.ts";
import { invalid, objectAt } from "../api-error.ts";

/** A message with its content as blocks. */
interface CheckedMessage {
  role: string;
  blocks: readonly JsonObject[];
}

/** Checks a conversation as the Messages API does. Throws ApiError with the text that the API gives. */
export function checkMessages(value: JsonValue | undefined): void {
  if (!Array.isArray(value)) throw invalid("messages: Field required");
  if (value.length === 0) throw invalid("messages: at least one message is required");
  const messages = value.map((message, index) => checkMessage(message, `messages.${index}`));
  if (messages[0]?.role !== "user") throw invalid('messages: first message must use the "user" role');
  for (const [index, message] of messages.entries()) {
    checkUsesAnswered(message, messages[index + 1], index);
    checkResultsAsked(message, messages[index - 1], index);
  }
}

function checkMessage(value: JsonValue, path: string): CheckedMessage {
  const { role, content } = objectAt(value, path);
  if (role !== "user" && role !== "assistant") throw invalid(`${path}.role: Input should be 'user' or 'assistant'`);
  if (content === "" || (Array.isArray(content) && content.length === 0)) {
    throw invalid(`${path}: all messages must have non-empty content`);
  }
  if (typeof content === "string") return { role, blocks: [{ type: "text", text: content }] };
  if (!Array.isArray(content)) throw invalid(`${path}.content: Input should be a valid list`);
  return { role, blocks: content.map((block, index) => checkBlock(block, `${path}.content.${index}`, role)) };
}

function checkBlock(value: JsonValue, path: string, role: string): JsonObject {
  const block = objectAt(value, path);
  switch (block.type) {
    case "text":
      if (typeof block.text !== "string") throw invalid(`${path}.text.text: Input should be a valid string`);
      if (block.text.trim() === "") throw invalid("messages: text content blocks must contain non-whitespace text");
      return block;
    case "tool_use":
      if (role !== "assistant") throw invalid(`${path}: tool_use blocks can only be in assistant messages`);
      if (!matches(block.name))
        throw invalid(`${path}.tool_use.name: String should match pattern '${PROVIDER_NAME.source}'`);
      if (!matches(block.id)) throw invalid(`${path}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'`);
      objectAt(block.input, `${path}.tool_use.input`);
      return block;
    case "tool_result":
      if (role !== "user") throw invalid(`${path}: tool_result blocks can only be in user messages`);
      return block;
    case "server_tool_use":
    case "tool_search_tool_result":
      if (role !== "assistant") throw invalid(`${path}: ${block.type} blocks can only be in assistant messages`);
      return block;
    case "thinking":
      if (typeof block.signature !== "string" || block.signature === "") {
        throw invalid(`${path}: Invalid \`signature\` in \`thinking\` block`);
      }
      return block;
    default:
      throw invalid(`${path}: Input tag ${textOf(block.type)} does not match any of the expected tags`);
  }
}

function checkUsesAnswered(message: CheckedMessage, next: CheckedMessage | undefined, index: number): void {
  const uses = ids(message, "tool_use", "id");
  if (new Set(uses).size < uses.length) throw invalid(`messages.${index}: \`tool_use\` ids must be unique`);
  const answered = next === undefined ? [] : ids(next, "tool_result", "tool_use_id");
  const missing = uses.filter((id) => !answered.includes(id));
  if (missing.length === 0) return;
  throw invalid(
    `messages.${index}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ` +
      `${missing.join(", ")}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`,
  );
}

function checkResultsAsked(message: CheckedMessage, previous: CheckedMessage | undefined, index: number): void {
  const results = ids(message, "tool_result", "tool_use_id");
  const asked = previous === undefined ? [] : ids(previous, "tool_use", "id");
  const stray = results.find((id) => !asked.includes(id));
  if (stray !== undefined) {
    throw invalid(`messages.${index}.content: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${stray}.`);
  }
  if (new Set(results).size < results.length) {
    throw invalid(`messages.${index}.content: each \`tool_use\` must have a single result.`);
  }
  const first = message.blocks.findIndex((block) => block.type !== "tool_result");
  if (first !== -1 && message.blocks.slice(first).some((block) => block.type === "tool_result")) {
    throw invalid(`messages.${index}: \`tool_result\` blocks must come first in the message.`);
  }
}

function ids(message: CheckedMessage, type: string, key: string): string[] {
  return message.blocks.filter((block) => block.type === type).map((block) => textOf(block[key]));
}

function textOf(value: JsonValue | undefined): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function matches(value: JsonValue | undefined): boolean {
  return typeof value === "string" && PROVIDER_NAME.test(value);
}
