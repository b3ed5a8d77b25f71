import type { JsonObject } from "@bufbuild/protobuf";
import type { CallUpdate } from "../../../client/call-progress.ts";

/** A tool as a model sees it, but for a provider's limits on names and schemas. */
export interface ToolDefinition {
  /** The tool's own name, such as "fs.read". */
  name: string;
  /** What it does, with the marker of `describeTool`. */
  description: string;
  /** JSON Schema 2020-12 of the input. */
  inputSchema: JsonObject;
  /** The capability it needs, such as "fs.read". */
  capability: string;
  /** Every call waits for a human. */
  requiresApproval: boolean;
}

/** One use of a tool that a model asked for. */
export interface ToolCall {
  /** The id that the model gave it, unique within a run. */
  id: string;
  /** The tool's own name. */
  name: string;
  /** What the model wrote. Not validated: that is the gate's job. */
  input: JsonObject;
  /** Aborting it cancels the call where it runs; `call` resolves when the call has ended there. */
  signal: AbortSignal;
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
  /** What the tool returned, where it succeeded. Untrusted. */
  output?: JsonObject;
}

/** Tools, and the way to call them. The loop knows nothing else of devices. */
export interface Toolbox {
  /** The tools. The same list for the whole of a run. */
  tools(): readonly ToolDefinition[];
  /** Calls a tool. What goes wrong is a result with `isError`, so that the model can act on it. */
  call(request: ToolCall): Promise<ToolResult>;
}
