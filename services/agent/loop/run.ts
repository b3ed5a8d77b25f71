import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { type Message, type Model, ModelError, type Turn, type Usage } from "../providers/model.ts";
import type { RunInput } from "../run-input/run-input.ts";
import type { Toolbox, ToolResult } from "../toolbox/toolbox.ts";
import { ASK_USER } from "./ask-user.ts";
import { addUsage, NO_USAGE, reachedLimit } from "./budget.ts";
import type { AgentCall, AgentEnd, AgentEvent, AgentResult } from "./events.ts";
import type { Steps } from "./steps.ts";
import { takeTurn } from "./take-turn.ts";
import { notRun, useTools } from "./use-tools.ts";

export type { AgentCall, AgentEnd, AgentEvent, AgentResult } from "./events.ts";

/** What a run reaches the world through, besides its steps. */
export interface RunPorts {
  model: Model;
  toolbox: Toolbox;
  /** Receives what happens, in order. Must not throw. */
  onEvent?: (event: AgentEvent) => void;
}

/** What a run has come to. */
interface Run {
  readonly input: RunInput;
  readonly ports: RunPorts;
  readonly steps: Steps;
  readonly onEvent: (event: AgentEvent) => void;
  readonly messages: Message[];
  readonly calls: AgentCall[];
  usage: Usage;
  turns: number;
  text: string;
  /** Text of turns that were cut off, which the next one goes on with. */
  carried: string;
}

/** How a step went: the run goes on, or how it ended. */
type Step = { kind: "next" } | { kind: AgentEnd; error?: Error };

const NEXT: Step = { kind: "next" };
const GO_ON = "Your answer was cut off by its length limit. Go on where it stopped.";

/**
 * Lets a model work with tools until it is done or a limit is reached: pure control flow over the ports, the same for a run
 * that lives in a process and for one that outlives it. What goes wrong with a tool goes to the model; what goes wrong with
 * the model ends the run.
 */
export async function runAgent(input: RunInput, ports: RunPorts, steps: Steps): Promise<AgentResult> {
  const run = startRun(input, ports, steps);
  for (;;) {
    const step = await takeStep(run).catch((thrown: unknown) => failed(thrown));
    if (step.kind !== "next") return resultOf(run, step.kind, step.error);
  }
}

function startRun(input: RunInput, ports: RunPorts, steps: Steps): Run {
  return {
    input,
    ports,
    steps,
    onEvent: ports.onEvent ?? (() => undefined),
    messages: [...input.messages],
    calls: [],
    usage: NO_USAGE,
    turns: 0,
    text: "",
    carried: "",
  };
}

async function takeStep(run: Run): Promise<Step> {
  if (run.steps.signal.aborted) return { kind: "canceled" };
  const limit = reachedLimit(run.input.limits, run.turns, run.usage);
  if (limit !== undefined) return { kind: limit };
  const turn = await nextTurn(run);
  if (turn.stop.kind === "refused") {
    // A refused turn is not kept and its tools are not used: the conversation stays as it was before it.
    run.text = turn.stop.explanation;
    return { kind: "refused" };
  }
  run.text = run.carried + turn.text;
  if (turn.native.content.length > 0 || turn.toolUses.length > 0) {
    run.messages.push({ role: "assistant", text: turn.text, toolUses: turn.toolUses, native: turn.native });
  }
  return turn.toolUses.length > 0 ? answerUses(run, turn) : afterWords(run, turn);
}

async function nextTurn(run: Run): Promise<Turn> {
  const { input, ports, steps, onEvent, messages } = run;
  run.turns++;
  onEvent({ kind: "turn_started", turn: run.turns });
  const tools = input.mayAsk ? [...input.toolset.tools, ASK_USER] : input.toolset.tools;
  const turn = await takeTurn(run.turns, { model: ports.model, steps, system: input.system, messages, tools, onEvent });
  run.usage = addUsage(run.usage, turn.usage);
  onEvent({ kind: "turn_ended", turn: run.turns, text: turn.text, stop: turn.stop.kind, usage: turn.usage });
  return turn;
}

/** Answers every tool use of a turn. Where no turn follows that could read the results, nothing is run. */
async function answerUses(run: Run, turn: Turn): Promise<Step> {
  run.carried = "";
  const limit =
    turn.stop.kind === "context_full" ? "token_limit" : reachedLimit(run.input.limits, run.turns, run.usage);
  const results =
    limit === undefined
      ? await useTools(turn.toolUses, {
          input: run.input,
          toolbox: run.ports.toolbox,
          steps: run.steps,
          onEvent: run.onEvent,
          usesLeft: run.input.limits.maxToolCalls - run.calls.length,
        })
      : turn.toolUses.map(() => notRun(ErrorReason.NOT_STARTED, `the run ended at its ${limit.replace("_", " ")}`));
  record(run, turn, results);
  return limit === undefined ? NEXT : { kind: limit };
}

function record(run: Run, turn: Turn, results: readonly ToolResult[]): void {
  const answers = turn.toolUses.map((use, index) => {
    const { content, isError, callId, approvalId, state } = results[index] ?? notRun(ErrorReason.INTERNAL, "no result");
    run.calls.push({
      toolUseId: use.id,
      tool: use.name,
      isError,
      ...(callId === undefined ? {} : { callId }),
      ...(approvalId === undefined ? {} : { approvalId }),
      ...(state === undefined ? {} : { state }),
    });
    return { toolUseId: use.id, content, isError };
  });
  run.messages.push({ role: "tool_results", results: answers });
}

/** After a turn without tool uses. */
function afterWords(run: Run, turn: Turn): Step {
  switch (turn.stop.kind) {
    case "paused":
      return NEXT;
    case "context_full":
      return { kind: "token_limit" };
    case "max_tokens":
      if (turn.text === "")
        return { kind: "error", error: new ModelError("broken", "one turn's tokens held no answer") };
      run.carried += turn.text;
      run.messages.push({ role: "user", text: GO_ON });
      return NEXT;
    default:
      return { kind: "done" };
  }
}

function failed(thrown: unknown): Step {
  if (thrown instanceof ModelError && thrown.kind === "canceled") return { kind: "canceled" };
  return { kind: "error", error: thrown instanceof Error ? thrown : new Error(String(thrown)) };
}

function resultOf(run: Run, kind: AgentEnd, error: Error | undefined): AgentResult {
  const { text, turns, usage, calls, messages } = run;
  return { kind, text, turns, usage, calls, messages, ...(error === undefined ? {} : { error }) };
}
