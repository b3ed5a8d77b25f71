import type { JsonObject } from "@bufbuild/protobuf";
import { CLIENT_INFO_META_KEY } from "@modelcontextprotocol/server";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { faultDetail } from "../fault/fault.ts";
import type { BegunCall } from "./gate.ts";
import { handleOwnTool } from "./handle-own-tool.ts";
import { callResult, errorResult, isOpen, type ToolCallResult, thrownResult } from "./result.ts";
import type { ToolRequest } from "./server.ts";
import { createdTask, takesTasks } from "./tasks.ts";
import { routeCall } from "./toolset.ts";
import { waitFor } from "./wait-for.ts";

/** The parameters of `tools/call`. */
export interface ToolCallParams {
  name: string;
  arguments?: JsonObject;
}

/** Serves `tools/call`. What goes wrong is a result that the model can read: few clients show it the protocol's errors. */
export async function handleCall(params: ToolCallParams, request: ToolRequest): Promise<ToolCallResult> {
  try {
    return (await handleOwnTool(params, request)) ?? (await handleTool(params, request));
  } catch (thrown: unknown) {
    if (faultDetail(thrown) === undefined) request.onError(thrown);
    return thrownResult(thrown);
  } finally {
    request.canceled.release();
  }
}

async function handleTool(params: ToolCallParams, request: ToolRequest): Promise<ToolCallResult> {
  const toolset = await request.gate.toolset();
  if (toolset.devices.length === 0) {
    const message = "no device is online: its tools are listed again when it is back";
    return errorResult({ reason: ErrorReason.DEVICE_OFFLINE, message });
  }
  const tool = toolset.byName.get(params.name);
  if (tool === undefined) {
    const available = [...toolset.byName.keys()].join(", ");
    const message = `no tool ${JSON.stringify(params.name)}`;
    return errorResult({ reason: ErrorReason.UNKNOWN_TOOL, message, metadata: { available } });
  }
  const { deviceId, input } = routeCall(toolset, tool, params.arguments ?? {});
  const client = clientName(request);
  const begun = await request.gate.begin({ deviceId, tool: tool.tool.name, params: input, client });
  return follow(begun, request);
}

/**
 * Waits for a call by the best way that its client can carry: a task where it goes on for longer than a client waits, and
 * otherwise a result that says so. A client that cancels cancels the call.
 */
async function follow(begun: BegunCall, request: ToolRequest): Promise<ToolCallResult> {
  const task = takesTasks(request.envelope);
  const call = await waitFor(begun, request, task ? 0 : request.waitMs);
  if (request.canceled.signal.aborted && isOpen(call)) return callResult(await request.gate.cancel(call.id));
  return task && isOpen(call) ? createdTask(call) : callResult(call);
}

/** What the client says that it is, as the call's record takes it. */
function clientName({ envelope }: ToolRequest): string {
  const info = envelope?.[CLIENT_INFO_META_KEY] as { name?: string } | undefined;
  const name = info?.name ?? "";
  return `mcp ${name.replace(/[^ -~]/g, "?")}`.slice(0, 64).trim();
}
