import type Anthropic from "@anthropic-ai/sdk";
import type { NameMap } from "../../../../lib/model-tools/names.ts";
import { rootObjectSchema } from "../../../../lib/model-tools/root-schema.ts";
import type { ToolDefinition } from "../../toolset/toolset.ts";

/**
 * The most tools that are all given to the model at once. A device has 30 of its own, about 7000 tokens; from twice that on
 * the model gets the few that every job begins with, and finds the others by the provider's own search.
 */
export const SEARCH_ABOVE = 64;

const SEARCH = "tool_search_tool_bm25";

/** Given to the model in any case, beside the tools that need no device. */
const ALWAYS: ReadonlySet<string> = new Set(["exec", "fs.list", "fs.read", "fs.search", "fs.write"]);

/**
 * The tools of a request, with a mark for the provider's cache behind those that the model is given. What is found by search
 * is not part of the prompt, and the API refuses a mark there.
 *
 * @param mark the fields that mark a tool; empty for no mark.
 */
export function toolParams(
  tools: readonly ToolDefinition[],
  names: NameMap,
  mark: Pick<Anthropic.Tool, "cache_control">,
): Anthropic.ToolUnion[] {
  // A device may call a tool of its own by the search's name: there is no search then, and no two tools of one name.
  if (tools.length <= SEARCH_ABOVE || names.toTool(SEARCH) !== undefined) {
    return marked(
      tools.map((tool) => toolParam(tool, names)),
      mark,
    );
  }
  const isGiven = (tool: ToolDefinition): boolean => tool.capability === "" || ALWAYS.has(tool.name);
  const given = tools.filter(isGiven).map((tool) => toolParam(tool, names));
  const found = tools.filter((tool) => !isGiven(tool)).map((tool) => toolParam(tool, names));
  return [
    ...marked([...given, { type: SEARCH, name: SEARCH }], mark),
    ...found.map((tool) => ({ ...tool, defer_loading: true })),
  ];
}

function marked(tools: Anthropic.ToolUnion[], mark: Pick<Anthropic.Tool, "cache_control">): Anthropic.ToolUnion[] {
  return tools.map((tool, index) => (index === tools.length - 1 ? { ...tool, ...mark } : tool));
}

function toolParam(tool: ToolDefinition, names: NameMap): Anthropic.Tool {
  return {
    name: names.toProvider(tool.name),
    description: tool.description,
    input_schema: rootObjectSchema(tool.inputSchema),
  };
}
