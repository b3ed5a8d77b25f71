import {
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  INTERNAL_ERROR,
  INVALID_PARAMS,
  ProtocolError,
} from "@modelcontextprotocol/server";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { reasonOf } from "../fault/fault.ts";
import { endFacts, stateWord } from "../model-tools/call-facts.ts";
import type { BegunCall, McpCall, McpGate } from "./gate.ts";
import { isoOf } from "./resource-views.ts";
import { callResult, isOpen, type ToolCallResult } from "./result.ts";
import type { Envelope } from "./server.ts";

/** The extension by which a client says that it takes tasks (SEP-2663). */
export const TASKS_EXTENSION = "io.modelcontextprotocol/tasks";

/** How often a client is asked to look, in milliseconds. */
const POLL_MS = 1000;

/** A request without a capability that it needs, by the extension's code. */
export const MISSING_CAPABILITY = -32021;

/** A task as the extension defines it: its id is the call's. */
interface Task {
  taskId: string;
  status: "working" | "completed" | "failed" | "cancelled";
  statusMessage?: string;
  createdAt: string;
  lastUpdatedAt: string;
  ttlMs: number | null;
  pollIntervalMs: number;
  [key: string]: unknown;
}

/** Whether a request's client takes a task in place of a result. */
export function takesTasks(envelope: Envelope): boolean {
  const capabilities = envelope?.[CLIENT_CAPABILITIES_META_KEY] as ClientCapabilities | undefined;
  return capabilities?.extensions?.[TASKS_EXTENSION] !== undefined;
}

/** The answer to `tools/call` whose call goes on: it is stored, so that the task outlives this process. */
export function createdTask(call: McpCall): ToolCallResult {
  // The plain task only: the rest of the answer is checked as a tool's result.
  return { content: [], resultType: "task", ...taskOf(call) };
}

type TaskHandler = (params: Record<string, unknown>, envelope: Envelope) => Promise<Record<string, unknown>>;

/** The extension's methods. */
export function taskHandlers(gate: McpGate): Readonly<Record<string, TaskHandler>> {
  return {
    async "tasks/get"(params, envelope) {
      requireTasks(envelope);
      const { call } = await found(gate, params);
      return { ...taskOf(call), ...endOf(call) };
    },
    async "tasks/cancel"(params, envelope) {
      requireTasks(envelope);
      const { call } = await found(gate, params);
      await gate.cancel(call.id);
      return {};
    },
    async "tasks/update"(params, envelope) {
      requireTasks(envelope);
      await found(gate, params);
      return {};
    },
  };
}

/** An approval is no input of the requester, and the end of a call that was denied is one that a model has to read. */
function endOf(call: McpCall): Record<string, unknown> {
  if (isOpen(call) || call.status.state === CallState.CANCELED) return {};
  if (isInternal(call)) return { error: { code: INTERNAL_ERROR, message: endFacts(call).message } };
  return { result: { resultType: "complete", ...callResult(call) } };
}

/** Whether what runs the tool has failed, and not the tool: for the extension that is no result. */
function isInternal({ status }: Pick<McpCall, "status">): boolean {
  return status.state === CallState.FAILED && status.error?.reason === ErrorReason.INTERNAL;
}

/** The time of a call that says none: a task must have one. */
const EPOCH = new Date(0).toISOString();

function taskOf({ id, createTime, status }: McpCall): Task {
  const created = isoOf(createTime) ?? EPOCH;
  const task = {
    taskId: id,
    createdAt: created,
    lastUpdatedAt: isoOf(status.endTime ?? status.approval?.decideTime) ?? created,
    ttlMs: null,
    pollIntervalMs: POLL_MS,
  };
  if (status.state === CallState.CANCELED) return { ...task, status: "cancelled" };
  if (status.state === CallState.HELD) {
    const statusMessage = `waiting for a person to decide about approval ${status.approval?.id ?? ""}`;
    return { ...task, status: "working", statusMessage };
  }
  if (isOpen({ status })) return { ...task, status: "working", statusMessage: stateWord(status.state) };
  return { ...task, status: isInternal({ status }) ? "failed" : "completed" };
}

async function found(gate: McpGate, { taskId }: Record<string, unknown>): Promise<BegunCall> {
  if (typeof taskId === "string" && taskId.length > 0 && taskId.length <= 64) {
    const call = await gate.find(taskId).catch((error: unknown) => {
      if (reasonOf(error) === ErrorReason.NOT_FOUND) return undefined;
      throw error;
    });
    if (call !== undefined) return call;
  }
  throw new ProtocolError(INVALID_PARAMS, "there is no such task");
}

function requireTasks(envelope: Envelope): void {
  if (takesTasks(envelope)) return;
  const data = { requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } } };
  throw new ProtocolError(MISSING_CAPABILITY, `the client has to declare the extension ${TASKS_EXTENSION}`, data);
}
