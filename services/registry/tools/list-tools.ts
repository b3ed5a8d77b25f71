import { create, type JsonObject } from "@bufbuild/protobuf";
import { type Tool, ToolSchema } from "../../../gen/ts/reeve/tool/v1/tool_pb.ts";
import {
  type ListToolsRequest,
  type ListToolsResponse,
  ListToolsResponseSchema,
} from "../../../gen/ts/reeve/tool/v1/tool_service_pb.ts";
import type { Directory } from "../devices/directory.ts";
import { pageOf } from "../pages.ts";
import type { OfferedTool } from "./offered.ts";

/** The tools that can be called on a device, by name, a page at a time. */
export async function listTools(directory: Directory, request: ListToolsRequest): Promise<ListToolsResponse> {
  const device = await directory.find(request.device);
  const tools = [...device.tools.values()].sort((a, b) => (a.spec.name < b.spec.name ? -1 : 1));
  const { page, nextPageToken } = pageOf(tools, request.pageSize, request.pageToken, 200);
  return create(ListToolsResponseSchema, { tools: page.map((tool) => toTool(tool, device.id)), nextPageToken });
}

/** A tool as callers see it. */
export function toTool({ spec, requiresApproval }: OfferedTool, deviceId: string): Tool {
  return create(ToolSchema, {
    name: spec.name,
    description: spec.description,
    capability: spec.capability,
    inputSchema: spec.inputSchema as JsonObject,
    outputSchema: spec.outputSchema as JsonObject,
    annotations: spec.annotations,
    requiresApproval,
    deviceId,
    method: spec.method,
    defaultTimeoutMs: spec.defaultTimeoutMs,
    schemaDigest: spec.schemaDigest,
  });
}
