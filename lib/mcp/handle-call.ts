import type { JsonObject } from "@bufbuild/protobuf";
import {
  CLIENT_INFO_META_KEY,
  INVALID_PARAMS,
  type InputRequiredResult,
  ProtocolError,
} from "@modelcontextprotocol/server";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { faultDetail } from "../fault/fault.ts";
import { comeBack, hasOpened, opensPages, type Round, roundOf, showPage } from "./approval-page.ts";
import type { BegunCall, McpCall } from "./gate.ts";
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

/** What `tools/call` is answered. */
type Answer = ToolCallResult | InputRequiredResult;

/**
 * Serves `tools/call`. What goes wrong is a result that the model can read: few clients show it the protocol's errors, which
 * are thrown only for what a client has done.
 */
export async function handleCall(params: ToolCallParams, request: ToolRequest): Promise<Answer> {
  try {
    return (await handleOwnTool(params, request)) ?? (await handleTool(params, request));
  } catch (thrown: unknown) {
    if (thrown instanceof ProtocolError) throw thrown;
    if (faultDetail(thrown) === undefined) request.onError(thrown);
    return thrownResult(thrown);
  } finally {
    request.canceled.release();
  }
}

async function handleTool(params: ToolCallParams, request: ToolRequest): Promise<Answer> {
  const round = roundOf(request.state);
  if (request.state !== undefined && round === undefined)
    throw new ProtocolError(INVALID_PARAMS, "requestState was not made by this server");
  if (round !== undefined) return followRound(await request.gate.find(round.callId), round, request);
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
 * Waits for a call by the best way that its client can carry: a task where it goes on for longer than a client waits, the
 * approval's page where a person has to decide, and otherwise a result that says so. A client that cancels cancels the call.
 */
async function follow(begun: BegunCall, request: ToolRequest): Promise<Answer> {
  const { envelope, approvalUrl } = request;
  const task = takesTasks(envelope);
  const page = !task && opensPages(envelope) ? approvalUrl : undefined;
  const call = await settled(begun, begun.joined, request, task || page !== undefined ? 0 : request.waitMs);
  if (task && isOpen(call)) return createdTask(call);
  const approvalId = approvalOf(call);
  if (page !== undefined && approvalId !== undefined) return showPage(call, page(approvalId), begun.joined);
  return callResult(call, approvalUrl);
}

/** Waits for a held call with a client that comes back. One whose user did not open the page gets the text about it. */
async function followRound(begun: BegunCall, round: Round, request: ToolRequest): Promise<Answer> {
  if (round.round === 1 && !hasOpened(request.responses)) return callResult(begun.call, request.approvalUrl);
  const call = await settled(begun, round.joined, request, request.waitMs);
  const again = approvalOf(call) === undefined ? undefined : comeBack(round);
  return again ?? callResult(call, request.approvalUrl);
}

/**
 * The call when it has ended, or as it stands when it is waited for no longer, or canceled where its client cancels. A request
 * that was given an earlier one's call leaves that alone: who asked first has not said that it is to end, and `call_cancel`
 * is how to say so by the call's id.
 */
async function settled(begun: BegunCall, joined: boolean, request: ToolRequest, heldMs: number): Promise<McpCall> {
  const call = await waitFor(begun, request, heldMs);
  return request.canceled.signal.aborted && !joined && isOpen(call) ? request.gate.cancel(call.id) : call;
}

function approvalOf({ status: { state, approval } }: McpCall): string | undefined {
  return state === CallState.HELD ? approval?.id : undefined;
}

/** What the client says that it is, as the call's record takes it. */
function clientName({ envelope }: ToolRequest): string {
  const info = envelope?.[CLIENT_INFO_META_KEY] as { name?: string } | undefined;
  const name = info?.name ?? "";
  return `mcp ${name.replace(/[^ -~]/g, "?")}`.slice(0, 64).trim();
}
