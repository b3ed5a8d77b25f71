import { create, type JsonObject } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { type Tool, ToolSchema } from "../../../gen/ts/reeve/tool/v1/tool_pb.ts";
import {
  type GetToolRequest,
  type GetToolResponse,
  GetToolResponseSchema,
  type ListToolsRequest,
  type ListToolsResponse,
  ListToolsResponseSchema,
} from "../../../gen/ts/reeve/tool/v1/tool_service_pb.ts";
import { allowsTool, type Principal, requireTool } from "../../../lib/auth/principal.ts";
import { type Directory, resolveTool } from "../devices/directory.ts";
import { pageOf } from "../pages.ts";
import type { OfferedTool } from "../tools/offered.ts";

/** The tools that the principal can call on a device, by name, a page at a time. */
export async function listTools(
  directory: Directory,
  request: ListToolsRequest,
  principal: Principal,
): Promise<ListToolsResponse> {
  const device = await directory.find(request.device);
  const allowed = [...device.tools.values()].filter(({ spec }) => allowsTool(principal, spec.name));
  const tools = allowed.sort((a, b) => (a.spec.name < b.spec.name ? -1 : 1));
  const { page, nextPageToken } = pageOf(tools, request.pageSize, request.pageToken, 200);
  return create(ListToolsResponseSchema, { tools: page.map((tool) => toTool(tool, device.id)), nextPageToken });
}

/** One tool of a device. Faults: TOOL_NOT_ALLOWED, UNKNOWN_TOOL, and NOT_AVAILABLE with the reason. */
export async function getTool(
  directory: Directory,
  { device: wanted, tool }: GetToolRequest,
  principal: Principal,
): Promise<GetToolResponse> {
  const device = await directory.find(wanted);
  requireTool(principal, tool);
  return create(GetToolResponseSchema, { tool: toTool(resolveTool(device, tool), device.id) });
}

/** A tool as callers see it. */
export function toTool({ spec, requiresApproval }: OfferedTool, deviceId: string): Tool {
  return create(ToolSchema, {
    name: spec.name,
    description: spec.description,
    capabilities: spec.capabilities,
    inputSchema: spec.inputSchema as JsonObject,
    outputSchema: spec.outputSchema as JsonObject,
    annotations: spec.annotations,
    requiresApproval,
    deviceId,
    method: spec.method,
    defaultTimeout: durationFromMs(spec.defaultTimeoutMs),
    schemaDigest: spec.schemaDigest,
  });
}
