import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { errorText, thrownFacts } from "../../../lib/model-tools/error-text.ts";
import type { ToolUse } from "../providers/model.ts";
import type { Toolbox, ToolResult } from "../toolbox/toolbox.ts";
import type { AgentEvent } from "./events.ts";

/** How to use tools. */
export interface UseToolsOptions {
  toolbox: Toolbox;
  signal: AbortSignal;
  onEvent: (event: AgentEvent) => void;
  /** How many more uses the run may make. */
  usesLeft: number;
  maxParallel: number;
}

/**
 * Uses the tools that a model asked for in one turn, several at the same time, and gives their results in the order of
 * the uses. Never rejects: whatever is wrong with a use is its result. Resolves when every call has ended.
 */
export async function useTools(uses: readonly ToolUse[], options: UseToolsOptions): Promise<ToolResult[]> {
  const results: ToolResult[] = [];
  const waiting = uses.entries();
  const work = async (): Promise<void> => {
    for (const [index, use] of waiting) {
      const input = use.input.kind === "json" ? use.input.value : {};
      options.onEvent({ kind: "tool_started", id: use.id, tool: use.name, input });
      const result = index < options.usesLeft ? await useTool(use, options) : overLimit();
      results[index] = result;
      options.onEvent({ kind: "tool_ended", id: use.id, tool: use.name, result });
    }
  };
  await Promise.all(Array.from({ length: Math.max(1, options.maxParallel) }, work));
  return results;
}

/** The result of a use that is not made. */
export function notRun(reason: ErrorReason, message: string): ToolResult {
  return { content: errorText({ reason, message }, "the run"), isError: true };
}

async function useTool(use: ToolUse, { toolbox, signal, onEvent }: UseToolsOptions): Promise<ToolResult> {
  const tool = toolbox.tools().find((one) => one.name === use.name);
  if (tool === undefined) return unknownTool(use.name, toolbox);
  if (use.input.kind === "malformed") return notRun(ErrorReason.INVALID_INPUT, use.input.problem);
  if (signal.aborted) return notRun(ErrorReason.CANCELED, "the run was canceled before this call was sent");
  try {
    return await toolbox.call({
      id: use.id,
      name: use.name,
      input: use.input.value,
      signal,
      onEvent: (report) => onEvent({ kind: "tool_report", id: use.id, tool: use.name, report }),
    });
  } catch (thrown: unknown) {
    return { content: errorText(thrownFacts(thrown), "the run"), isError: true };
  }
}

function unknownTool(name: string, toolbox: Toolbox): ToolResult {
  const available = toolbox.tools().map((tool) => tool.name);
  const message = `no tool ${JSON.stringify(name.slice(0, 200))}`;
  const facts = { reason: ErrorReason.UNKNOWN_TOOL, message, metadata: { available: available.join(", ") } };
  return { content: errorText(facts, "the run"), isError: true };
}

function overLimit(): ToolResult {
  return notRun(ErrorReason.RATE_LIMITED, "the run has used as many tools as it may: answer with what is known");
}
