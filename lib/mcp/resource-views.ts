import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { stateWord } from "../model-tools/call-facts.ts";
import { shortenJson } from "../model-tools/shorten.ts";
import type { McpCall } from "./gate.ts";
import { type ApprovalUrl, callText, isOpen, MAX_TEXT, SANITIZED_NOTE } from "./result.ts";

/** The address of a call. */
export function callUri(callId: string): string {
  return `reeve://calls/${callId}`;
}

/** The address of an approval. */
export function approvalUri(approvalId: string): string {
  return `reeve://approvals/${approvalId}`;
}

/**
 * A call as a client reads it: its output is data from a device, as JSON whose strings nothing can end; of any other end it
 * holds the words that `call_result` has, where a device's are in an envelope. Pure.
 */
export function callView(call: McpCall, approvalUrl: ApprovalUrl): JsonObject {
  const { id, spec, status, createTime } = call;
  const { approval, output = {}, outputSanitized } = status;
  const isDone = status.state === CallState.SUCCEEDED;
  return present({
    call_id: id,
    tool: spec.tool,
    device: spec.deviceName,
    state: stateWord(status.state),
    is_open: isOpen(call),
    purpose: spec.purpose,
    arguments: spec.arguments && shortened(spec.arguments),
    create_time: isoOf(createTime),
    end_time: isoOf(status.endTime),
    rules: [...(status.decision?.ruleIds ?? [])],
    approval: approval && approvalUri(approval.id),
    ...(isDone ? { output: shortened(output) } : { message: callText(call, approvalUrl) }),
    ...(isDone && outputSanitized ? { note: SANITIZED_NOTE } : {}),
  });
}

/** The approval of a call, as far as its caller sees it: whether a person still has to decide, who did, and what holds it. */
export function approvalView(call: McpCall, approvalUrl: ApprovalUrl): JsonObject {
  const { id, spec, status } = call;
  const { approval } = status;
  const isPending = status.state === CallState.HELD;
  return present({
    approval_id: approval?.id ?? "",
    state: approvalState(call),
    call: callUri(id),
    call_state: stateWord(status.state),
    tool: spec.tool,
    device: spec.deviceName,
    rules: [...(status.decision?.ruleIds ?? [])],
    decided_by: approval?.decidedByName,
    decide_time: isoOf(approval?.decideTime),
    page: isPending ? approvalUrl?.(approval?.id ?? "") : undefined,
    message: isPending ? callText(call, approvalUrl) : undefined,
  });
}

/** What is known of an approval by its call; what a person decided shows in what became of the call. */
function approvalState({ status: { state, approval } }: McpCall): string {
  if (state === CallState.HELD) return "pending";
  if (state === CallState.EXPIRED) return "expired";
  return approval?.decideTime === undefined ? "withdrawn" : "decided";
}

/** A time as text. */
export function isoOf(time: Timestamp | undefined): string | undefined {
  return time && timestampDate(time).toISOString();
}

function shortened(value: JsonObject): JsonValue {
  return JSON.parse(shortenJson(value, MAX_TEXT)) as JsonValue;
}

/** Without what is not known. */
function present(fields: Record<string, JsonValue | undefined>): JsonObject {
  return Object.fromEntries(
    Object.entries(fields).flatMap(([name, value]) => (value === undefined || value === "" ? [] : [[name, value]])),
  );
}
