import type { JsonObject } from "@bufbuild/protobuf";
import type { CallUpdate } from "../../../client/call-progress.ts";

/** One use of a tool that a model asked for. */
export interface ToolCall {
  /** The id that the model gave it, unique within a run. */
  id: string;
  /** The id that the call has in the registry: `callIdOf` the run and the use. */
  callId: string;
  /** The tool's own name. */
  name: string;
  /** What the model wrote. Not validated: that is the gate's job. */
  input: JsonObject;
  /** Gets what happens while the call runs. Must not throw. */
  onEvent?: (report: CallReport) => void;
}

/** Something that happened to a call before its end. The first is that it goes out now, under this id. */
export type CallReport = { kind: "sent"; callId: string } | CallUpdate;

/** How a call ended, as far as a model is concerned. */
export interface ToolResult {
  /** What the model reads. Never empty. */
  content: string;
  isError: boolean;
  /** The call's id. Absent where nothing was sent. */
  callId?: string;
  /** The approval's id, where the call was held. */
  approvalId?: string;
  /** The call's last known state, such as "succeeded". */
  state?: string;
}

/** How a call is. Plain JSON. */
export type CallView =
  | { kind: "ended"; result: ToolResult }
  /** Its end comes as an answer; after so many seconds it is looked at in any case. Default: as long as it takes. */
  | { kind: "waiting"; seconds?: number };

/** Why a call is looked at. */
export interface Look {
  /** No answer came for as long as it was waited for. */
  timeOver: boolean;
  /** The run has canceled it. */
  canceled: boolean;
}

/**
 * The way to call tools, in parts that a run can be interrupted between: no part waits for a device or a person. The loop
 * knows nothing else of devices. What goes wrong with a call is a result with `isError`, so that the model can act on it.
 */
export interface Toolbox {
  /** Hands a call over. The same call again changes nothing and runs nothing twice. */
  submit(call: ToolCall): Promise<CallView>;
  /** How a call is that was handed over. Ended, or waiting once more. */
  look(call: ToolCall, why: Look): Promise<CallView>;
  /** Asks that a call be canceled. Its end comes as an answer, as any. */
  cancel(call: ToolCall): Promise<CallView>;
}

/** The name under which the end of a call comes as an answer. */
export function callAnswer(callId: string): string {
  return `call/${callId}`;
}
