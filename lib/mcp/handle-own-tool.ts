import { invalidField } from "../fault/invalid-input.ts";
import type { ToolCallParams } from "./handle-call.ts";
import { CALL_CANCEL, CALL_RESULT, MAX_WAIT_S } from "./own-tools.ts";
import { callResult, type ToolCallResult } from "./result.ts";
import type { ToolRequest } from "./server.ts";
import { waitFor } from "./wait-for.ts";

/** Serves the face's own tools; undefined for any other. Neither runs anything. */
export async function handleOwnTool(
  { name, arguments: args = {} }: ToolCallParams,
  request: ToolRequest,
): Promise<ToolCallResult | undefined> {
  if (name === CALL_CANCEL) {
    const { callId } = argumentsOf(args, ["call_id"]);
    return callResult(await request.gate.cancel(callId));
  }
  if (name !== CALL_RESULT) return undefined;
  const { callId, waitMs } = argumentsOf(args, ["call_id", "wait_seconds"]);
  const found = await request.gate.find(callId);
  if (waitMs === 0) return callResult(found.call, request.approvalUrl);
  return callResult(await waitFor(found, { ...request, waitMs }, waitMs), request.approvalUrl);
}

/** Checked by hand, as the schemas that are listed say. Throws INVALID_INPUT naming the field. */
function argumentsOf(args: Record<string, unknown>, known: readonly string[]): { callId: string; waitMs: number } {
  for (const key of Object.keys(args)) {
    if (!known.includes(key)) throw invalidField(key.slice(0, 64), "unknown", "is no argument of this tool");
  }
  const { call_id: callId, wait_seconds: seconds = 0 } = args;
  if (typeof callId !== "string" || callId === "" || callId.length > 64)
    throw invalidField("call_id", "string", "must be a call's id, of 1 to 64 characters");
  if (typeof seconds !== "number" || !Number.isInteger(seconds) || seconds < 0 || seconds > MAX_WAIT_S)
    throw invalidField("wait_seconds", "range", `must be a whole number from 0 to ${MAX_WAIT_S}`);
  return { callId, waitMs: seconds * 1000 };
}
