import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { invalid, objectAt } from "../api-error.ts";
import type { MessagesRequest } from "./seen.ts";

/** The provider's own search for tools, in its type and its name. */
export const SEARCH = "tool_search_tool_bm25";

/** The most tools that one search finds, as the API does. */
const MAX_FOUND = 5;

/** Which deferred tools a search finds: those with most of its words in their names and descriptions. */
export function searchTools(query: string, tools: MessagesRequest["tools"]): string[] {
  const words = query
    .toLowerCase()
    .split(/\W+/u)
    .filter((word) => word !== "");
  const scored = (tools ?? []).flatMap((tool) => {
    if (!("input_schema" in tool) || tool.defer_loading !== true) return [];
    const text = `${tool.name} ${tool.description ?? ""}`.toLowerCase();
    return [{ name: tool.name, score: words.filter((word) => text.includes(word)).length }];
  });
  const found = scored.filter(({ score }) => score > 0).toSorted((a, b) => b.score - a.score);
  return found.slice(0, MAX_FOUND).map(({ name }) => name);
}

/** Refuses a search without its result, a result without its search, and a reference to a tool that there is not. */
export function checkReferences(messages: JsonValue | undefined, tools: JsonValue | undefined): void {
  const blocks = listOf(messages).flatMap((message) => listOf(objectAt(message, "messages").content)) as JsonObject[];
  const searches = blocks.filter(({ type }) => type === "server_tool_use");
  const results = blocks.filter(({ type }) => type === "tool_search_tool_result");
  for (const { id, input } of searches) {
    if (typeof objectAt(input, "server_tool_use.input").query !== "string")
      throw invalid("server_tool_use.input: query");
    if (!results.some((result) => result.tool_use_id === id)) throw invalid("server_tool_use without its result");
  }
  const names = new Set(listOf(tools).map((tool) => objectAt(tool, "tools").name));
  for (const { tool_use_id: id, content } of results) {
    if (!searches.some((search) => search.id === id)) throw invalid("tool_search_tool_result without its search");
    for (const reference of listOf(objectAt(content, "content").tool_references)) {
      const { tool_name: name } = objectAt(reference, "tool_references");
      if (!names.has(name)) throw invalid(`Tool reference '${JSON.stringify(name)}' not found in available tools`);
    }
  }
}

function listOf(value: JsonValue | undefined): JsonValue[] {
  return Array.isArray(value) ? value : [];
}
