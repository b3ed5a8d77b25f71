import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { errorText } from "../../../lib/model-tools/error-text.ts";
import type { ToolUse } from "../providers/model.ts";
import { callIdOf } from "../run-input/call-id.ts";
import type { RunInput } from "../run-input/run-input.ts";
import type { CallReport, Toolbox, ToolResult } from "../toolbox/toolbox.ts";
import { ASK_USER, questionOf } from "./ask-user.ts";
import type { AgentEvent } from "./events.ts";
import { type OpenUse, openCall, openQuestion } from "./open-use.ts";
import type { Steps } from "./steps.ts";

/** How to use tools. */
export interface UseToolsOptions {
  input: RunInput;
  toolbox: Toolbox;
  steps: Steps;
  onEvent: (event: AgentEvent) => void;
  /** How many more uses the run may make. */
  usesLeft: number;
}

/**
 * Uses the tools that a model asked for in one turn, several at the same time, and gives their results in the order of
 * the uses. What is wrong with a use is its result. Resolves when every call has ended. Steps are taken one after the
 * other, so that a run that is played again takes the same ones.
 */
export async function useTools(uses: readonly ToolUse[], options: UseToolsOptions): Promise<ToolResult[]> {
  const { steps, onEvent, input } = options;
  const results: ToolResult[] = [];
  const open = new Map<string, { index: number; use: ToolUse; waiting: OpenUse }>();
  let next = 0;
  let canceled = false;

  const end = (index: number, { id, name: tool }: ToolUse, result: ToolResult): void => {
    results[index] = result;
    onEvent({ kind: "tool_ended", id, tool, result });
  };
  const start = async (index: number, use: ToolUse): Promise<void> => {
    const value = use.input.kind === "json" ? use.input.value : {};
    onEvent({ kind: "tool_started", id: use.id, tool: use.name, input: value });
    const started = index < options.usesLeft ? await startUse(use, options) : overLimit();
    if ("content" in started) end(index, use, started);
    else open.set(started.wait.name, { index, use, waiting: started });
  };
  const startMore = async (): Promise<void> => {
    while (next < uses.length && open.size < Math.max(1, input.limits.maxParallel)) {
      const use = uses[next];
      if (use !== undefined) await start(next, use);
      next++;
    }
  };
  const advance = async (name: string, step: (one: OpenUse) => Promise<ToolResult | undefined>): Promise<void> => {
    const one = open.get(name);
    const result = one && (await step(one.waiting));
    if (one === undefined || result === undefined) return;
    open.delete(name);
    end(one.index, one.use, result);
  };

  for (;;) {
    await startMore();
    if (open.size === 0) return results;
    if (steps.signal.aborted && !canceled) {
      canceled = true;
      for (const name of [...open.keys()]) await advance(name, (one) => one.cancel());
      continue;
    }
    const answer = await steps.answer([...open.values()].map((one) => one.waiting.wait));
    if (answer !== undefined) await advance(answer.name, (one) => one.take(answer));
  }
}

/** The result of a use that is not made. */
export function notRun(reason: ErrorReason, message: string): ToolResult {
  return { content: errorText({ reason, message }, "the run"), isError: true };
}

async function startUse(use: ToolUse, options: UseToolsOptions): Promise<ToolResult | OpenUse> {
  const { input, steps, toolbox, onEvent } = options;
  const asks = input.mayAsk && use.name === ASK_USER.name;
  if (!asks && input.toolset.tools.every((one) => one.name !== use.name)) return unknownTool(use.name, input);
  if (use.input.kind === "malformed") return notRun(ErrorReason.INVALID_INPUT, use.input.problem);
  if (steps.signal.aborted) return notRun(ErrorReason.CANCELED, "the run was canceled before this call was sent");
  const id = callIdOf(input.runId, use.id);
  if (asks) return ask(id, use, options);
  const call = {
    id: use.id,
    callId: id,
    name: use.name,
    input: use.input.value,
    onEvent: (report: CallReport) => onEvent({ kind: "tool_report", id: use.id, tool: use.name, report }),
  };
  return openCall(call, toolbox, steps);
}

function ask(questionId: string, use: ToolUse, { input, onEvent }: UseToolsOptions): ToolResult | OpenUse {
  const question = use.input.kind === "json" ? questionOf(use.input.value) : undefined;
  if (question === undefined) return notRun(ErrorReason.INVALID_INPUT, "question: must be a text");
  onEvent({ kind: "question", questionId, text: question });
  return openQuestion(questionId, input.maxWaitSeconds);
}

function unknownTool(name: string, { toolset }: RunInput): ToolResult {
  const available = toolset.tools.map((tool) => tool.name);
  const message = `no tool ${JSON.stringify(name.slice(0, 200))}`;
  const facts = { reason: ErrorReason.UNKNOWN_TOOL, message, metadata: { available: available.join(", ") } };
  return { content: errorText(facts, "the run"), isError: true };
}

function overLimit(): ToolResult {
  return notRun(ErrorReason.RATE_LIMITED, "the run has used as many tools as it may: answer with what is known");
}
