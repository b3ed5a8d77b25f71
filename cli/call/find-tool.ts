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

/**
 * A tool as a device offers it. Throws UNKNOWN_TOOL, with the tools that there are, and NOT_AVAILABLE, with what the
 * device lacks.
 */
export async function findTool(registry: RegistryClient, device: string, name: string): Promise<Tool> {
  const tools = await listTools(registry, device);
  const found = tools.find((tool) => tool.name === name);
  if (found !== undefined) return found;
  const { device: known } = await registry.getDevice({ device });
  const missing = known?.unavailable.find(({ tool }) => tool === name);
  if (missing !== undefined) {
    const message = `${name} is not available on ${known?.name ?? device}: ${missing.why}`;
    throw fault(ErrorReason.NOT_AVAILABLE, { tool: name, program: missing.why }, { message });
  }
  const available = tools.map((tool) => tool.name).join(", ");
  throw fault(
    ErrorReason.UNKNOWN_TOOL,
    { tool: name, available },
    { message: `no tool ${JSON.stringify(name)} on ${known?.name ?? device}` },
  );
}
