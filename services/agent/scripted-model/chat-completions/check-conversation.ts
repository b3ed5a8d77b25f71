import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { invalid, objectAt } from "../api-error.ts";

/**
 * Checks a conversation: OpenAI wants every tool call answered right after it and only that, Ollama and vLLM parse the
 * arguments of earlier calls, and all refuse a message of the assistant's without content and calls. Throws ApiError.
 */
export function checkConversation(value: JsonValue | undefined): void {
  if (!Array.isArray(value) || value.length === 0) throw invalid("Invalid 'messages': empty array");
  const open = new Set<string>();
  const taken = new Set<string>();
  for (const [index, item] of value.entries()) {
    const path = `messages[${index}]`;
    const message = objectAt(item, path);
    if (message.role === "tool") {
      closeCall(message, open, path);
      continue;
    }
    if (open.size > 0) throw unanswered(open);
    checkMessage(message, path);
    for (const id of callIds(message, path)) {
      if (taken.has(id)) throw invalid(`${path}: tool call id ${id} is used twice`);
      taken.add(id);
      open.add(id);
    }
  }
  if (open.size > 0) throw unanswered(open);
}

function checkMessage({ role, content, tool_calls }: JsonObject, path: string): void {
  if (role === "system" || role === "user") {
    if (typeof content !== "string") throw invalid(`Invalid type for '${path}.content'`);
    return;
  }
  if (role !== "assistant") throw invalid(`Invalid value: ${JSON.stringify(role)} for ${path}.role`);
  if (tool_calls === undefined && (typeof content !== "string" || content === "")) {
    throw invalid(`Invalid value for '${path}.content': expected a string, got null`);
  }
  if (Array.isArray(tool_calls) && tool_calls.length === 0) throw invalid(`Invalid '${path}.tool_calls': empty array`);
}

function callIds({ tool_calls }: JsonObject, path: string): string[] {
  if (!Array.isArray(tool_calls)) return [];
  return tool_calls.map((value, at) => {
    const { id, type, function: called } = objectAt(value, `${path}.tool_calls[${at}]`);
    const { name, arguments: json } = objectAt(called, `${path}.tool_calls[${at}].function`);
    if (typeof id !== "string" || id === "" || id.length > 40) throw invalid(`Invalid '${path}.tool_calls[${at}].id'`);
    if (type !== "function" || typeof name !== "string" || !/^[a-zA-Z0-9_-]{1,64}$/u.test(name)) {
      throw invalid(`Invalid '${path}.tool_calls[${at}].function.name'`);
    }
    if (!isObjectText(json)) throw invalid("invalid tool call arguments");
    return id;
  });
}

function isObjectText(json: JsonValue | undefined): boolean {
  if (typeof json !== "string") return false;
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

function closeCall({ tool_call_id: id, content }: JsonObject, open: Set<string>, path: string): void {
  if (typeof id !== "string" || !open.delete(id)) {
    throw invalid(`${path}: messages with role 'tool' must be a response to a preceding message with 'tool_calls'.`);
  }
  if (typeof content !== "string" || content === "") throw invalid(`Invalid '${path}.content'`);
}

function unanswered(open: ReadonlySet<string>): Error {
  return invalid(
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. " +
      `The following tool_call_ids did not have response messages: ${[...open].join(", ")}`,
  );
}
