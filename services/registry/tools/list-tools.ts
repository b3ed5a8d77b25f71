import { create, type JsonObject } from "@bufbuild/protobuf";
import {
  type ListToolsRequest,
  type ListToolsResponse,
  ListToolsResponseSchema,
} from "../../../gen/ts/reeve/registry/v1/registry_service_pb.ts";
import { type Tool, ToolSchema } from "../../../gen/ts/reeve/tool/v1/tool_pb.ts";
import type { Directory } from "../devices/directory.ts";
import { pageOf } from "../pages.ts";
import type { OfferedTool } from "./offered.ts";

/** The tools that can be called on a device, by name, a page at a time. */
export async function listTools(directory: Directory, request: ListToolsRequest): Promise<ListToolsResponse> {
  const device = await directory.find(request.device);
  const tools = [...device.tools.values()].sort((a, b) => (a.entry.name < b.entry.name ? -1 : 1));
  const { page, nextPageToken } = pageOf(tools, request.pageSize, request.pageToken, 200);
  return create(ListToolsResponseSchema, { tools: page.map((tool) => toTool(tool, device.id)), nextPageToken });
}

/** A tool as callers see it. */
export function toTool({ entry, requiresApproval }: OfferedTool, deviceId: string): Tool {
  return create(ToolSchema, {
    name: entry.name,
    description: entry.description,
    capability: entry.capability,
    inputSchema: entry.inputSchema as JsonObject,
    outputSchema: entry.outputSchema as JsonObject,
    annotations: entry.annotations,
    requiresApproval,
    deviceId,
    method: entry.method,
    defaultTimeoutMs: entry.defaultTimeoutMs,
    schemaDigest: entry.schemaDigest,
  });
}
