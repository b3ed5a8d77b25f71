import type { RegistryClient } from "../../client/registry.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import type { Tool } from "../../gen/ts/reeve/tool/v1/tool_pb.ts";
import { fault } from "../../lib/fault/fault.ts";
import { readAll } from "../print/pages.ts";

/** All tools that can be called on a device, by name. */
export function listTools(registry: RegistryClient, device: string): Promise<Tool[]> {
  return readAll(async (pageToken) => {
    const { tools, nextPageToken } = await registry.listTools({ device, pageToken });
    return { items: tools, nextPageToken };
  });
}

/** A tool as a device offers it. Throws UNKNOWN_TOOL, with the device's tools, and NOT_AVAILABLE, with what is missing. */
export async function findTool(registry: RegistryClient, device: string, name: string): Promise<Tool> {
  const { tool } = await registry.getTool({ device, tool: name });
  if (tool !== undefined) return tool;
  throw fault(ErrorReason.INTERNAL, {}, { message: "the registry answered without a tool" });
}
