import type { JsonObject } from "@bufbuild/protobuf";
import type { Message, Usage } from "../providers/model.ts";
import type { CallReport, ToolResult } from "../toolbox/toolbox.ts";

/** How much a run may use. */
export interface RunLimits {
  /** The most turns of the model. Default 25. */
  maxTurns: number;
  /** The most tokens of all turns: input and output, without what came from the provider's cache. Default 200000. */
  maxTokens: number;
  /** The most tool uses. Further ones are answered with an error. Default 100. */
  maxToolCalls: number;
  /** How many calls of one turn run at the same time. Default 8. */
  maxParallel: number;
}

/** The limits where none are given. */
export const DEFAULT_LIMITS: Readonly<RunLimits> = Object.freeze({
  maxTurns: 25,
  maxTokens: 200_000,
  maxToolCalls: 100,
  maxParallel: 8,
});

/** Something that happened in a run. */
export type AgentEvent =
  /** The model is asked. Turns count from 1. */
  | { kind: "turn_started"; turn: number }
  /** A piece of the model's text. */
  | { kind: "text"; text: string }
  /** A tool is used now. `input` is empty where what the model wrote was no JSON object. */
  | { kind: "tool_started"; id: string; tool: string; input: JsonObject }
  | { kind: "tool_report"; id: string; tool: string; report: CallReport }
  | { kind: "tool_ended"; id: string; tool: string; result: ToolResult }
  | { kind: "turn_ended"; turn: number; stop: string; usage: Usage };

/** One use of a tool in a run. */
export interface AgentCall {
  toolUseId: string;
  tool: string;
  isError: boolean;
  /** The call's id. Absent where nothing was sent. */
  callId?: string;
  approvalId?: string;
  /** The call's last known state, such as "succeeded". */
  state?: string;
}

/** How a run ended. */
export type AgentEnd =
  /** The model was done. */
  | "done"
  | "turn_limit"
  /** Also where the conversation does not fit the model any more. */
  | "token_limit"
  /** The signal was aborted, and every call has ended. */
  | "canceled"
  /** The model or its provider refused; `text` says why. */
  | "refused"
  | "error";

/** A run that has ended. */
export interface AgentResult {
  kind: AgentEnd;
  /** The model's last text. */
  text: string;
  turns: number;
  usage: Usage;
  calls: readonly AgentCall[];
  /** The conversation. Every tool use in it is answered, so that it can be resumed whatever the end was. */
  messages: readonly Message[];
  /** What went wrong, with kind "error". */
  error?: Error;
}
