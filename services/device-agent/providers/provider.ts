import type { AnnouncedTools } from "../../../gen/ts/reeve/device/v1/manifest_pb.ts";
import type { ToolSpec } from "../../../lib/tool/spec.ts";
import type { AnnouncedTool } from "../../../lib/toolschema/announced-tool.ts";
import type { DeviceTool } from "../tools/tool.ts";

/** A tool that this machine cannot run. */
export interface UnavailableTool {
  tool: string;
  /** The program or programs it needs, such as "docker". */
  program: string;
  /** Why, for the operator. */
  why: string;
}

/** Tools that the control plane does not know: what defines them for the manifest, and what runs them. */
export interface Announcement {
  definition: AnnouncedTools;
  /** The implementation of a tool that the definition describes. */
  implement(tool: AnnouncedTool): DeviceTool;
}

export interface ProvidedTools {
  /** Built-in tools that can run. */
  tools: readonly DeviceTool[];
  /** The specs of all built-in tools, those included that cannot run here. */
  known: readonly ToolSpec[];
  /** In one order, so that the same tools give the same manifest. */
  announced: readonly Announcement[];
  /** What cannot run here, and why. */
  unavailable: readonly UnavailableTool[];
}

/** Where a device's tools come from. */
export interface ToolProvider extends Disposable {
  /** The tools it has now. */
  provided(): ProvidedTools;
  /** Calls back after each change of what it provides. Returns a function that stops it. */
  onChange(listener: () => void): () => void;
}
