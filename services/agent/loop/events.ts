import type { JsonObject } from "@bufbuild/protobuf";
import type { Message, Usage } from "../providers/model.ts";
import type { CallReport, ToolResult } from "../toolbox/toolbox.ts";

/**
 * Something that happened in a run. A run that is played again reports the same events in the same order, but for "text" and
 * "tool_report", which come from within an effect.
 */
export type AgentEvent =
  /** The model is asked. Turns count from 1. */
  | { kind: "turn_started"; turn: number }
  /** A piece of the model's text. */
  | { kind: "text"; text: string }
  /** A tool is used now. `input` is empty where what the model wrote was no JSON object. */
  | { kind: "tool_started"; id: string; tool: string; input: JsonObject }
  | { kind: "tool_report"; id: string; tool: string; report: CallReport }
  | { kind: "tool_ended"; id: string; tool: string; result: ToolResult }
  /** The model asks a person: `AnswerRun` with this id answers. */
  | { kind: "question"; questionId: string; text: string }
  | { kind: "turn_ended"; turn: number; text: string; stop: string; usage: Usage };

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
