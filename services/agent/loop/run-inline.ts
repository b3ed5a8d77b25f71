import type { Model } from "../providers/model.ts";
import type { RunInput } from "../run-input/run-input.ts";
import { createFollowedToolbox, type ToolCaller } from "../toolbox/followed-toolbox.ts";
import type { AgentEvent, AgentResult } from "./events.ts";
import { createInlineSteps } from "./inline-steps.ts";
import { runAgent } from "./run.ts";

/** What a run in this process reaches the world through. */
export interface InlinePorts {
  model: Model;
  caller: ToolCaller;
  /** Receives what happens, in order. Must not throw. */
  onEvent?: (event: AgentEvent) => void;
  /** Aborting it cancels the turn and the calls that run; the run ends when they have ended. */
  signal?: AbortSignal;
}

/** Runs an agent in this process, for a caller who stays until its end. Never rejects. */
export function runInline(input: RunInput, { model, caller, onEvent, signal }: InlinePorts): Promise<AgentResult> {
  const steps = createInlineSteps(signal);
  const toolbox = createFollowedToolbox(caller, steps.deliver);
  return runAgent(input, { model, toolbox, ...(onEvent && { onEvent }) }, steps);
}
