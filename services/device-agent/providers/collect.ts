import type { AnnouncedTools } from "../../../gen/ts/reeve/device/v1/manifest_pb.ts";
import type { ToolSpec } from "../../../lib/tool/spec.ts";
import { readAnnouncements } from "../../../lib/toolschema/announcements.ts";
import type { DeviceTool } from "../tools/tool.ts";
import type { ProvidedTools, UnavailableTool } from "./provider.ts";

/** The tools of all providers of a device. */
export interface CollectedTools {
  /** The tools that can run. */
  tools: readonly DeviceTool[];
  /** The specs of all tools, those included that cannot run here. */
  known: readonly ToolSpec[];
  unavailable: readonly UnavailableTool[];
  /** The definitions that are within the limits, for the manifest. */
  announced: readonly AnnouncedTools[];
}

/**
 * Joins what the providers have. Announced tools are read with the limits that the registry applies to them, so that what is
 * announced here is taken there. Pure.
 */
export function collectTools(provided: readonly ProvidedTools[]): CollectedTools {
  const announcements = new Map(provided.flatMap(({ announced }) => announced).map((one) => [one.definition, one]));
  const { services, tools, unavailable, refused } = readAnnouncements([...announcements.keys()]);
  const announcedTools = tools.flatMap((tool) => announcements.get(tool.definition)?.implement(tool) ?? []);
  return {
    tools: [...provided.flatMap((one) => one.tools), ...announcedTools],
    known: [...provided.flatMap((one) => one.known), ...tools.map(({ spec }) => spec)],
    unavailable: [
      ...provided.flatMap((one) => one.unavailable),
      ...unavailable.map(({ tool, why }) => ({ tool, program: tool, why })),
      ...refused.map(({ name, why }) => ({ tool: name, program: name, why })),
    ],
    announced: services,
  };
}
