import { followCall } from "../../../client/call-tool.ts";
import type { RegistryClient } from "../../../client/registry.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { type DeviceName, type RoutedInput, takeDevice } from "../../../lib/model-tools/device-parameter.ts";
import { type ErrorFacts, errorText, thrownFacts } from "../../../lib/model-tools/error-text.ts";
import type { Toolset, ToolsetTool } from "../toolset/toolset.ts";
import { resultOf } from "./call-result.ts";
import type { ToolCaller } from "./followed-toolbox.ts";
import type { ToolCall, ToolResult } from "./toolbox.ts";

/** How to call tools through a registry. */
export interface RegistryCallerOptions {
  /** Over HTTP/2 or in memory: calls go over the CallTools stream. */
  client: RegistryClient;
  toolset: Toolset;
  /** How long a call that a human must decide on is waited for, in milliseconds. Default 60000, at most 3600000. */
  approvalWaitMs?: number;
  /** How long the end of a canceled call is waited for, in milliseconds. Default 15000. */
  cancelGraceMs?: number;
  /** The most characters of a call's output that the model is given. Default 60000. */
  maxResultChars?: number;
  /** Why the calls are wanted: shown to the human who decides. At most 1000 characters. Default empty. */
  purpose?: string;
  /** The pauses before each new try after the stream broke, in milliseconds. Default: those of the client. */
  retryDelaysMs?: readonly number[];
}

/**
 * The tools of a toolset, called through the registry's gate. Every call goes out under an id that is the same
 * whenever the same use is sent again. Errors of the gate and of the device are results, as they were given.
 */
export function createRegistryCaller(options: RegistryCallerOptions): ToolCaller {
  const byName = new Map(options.toolset.tools.map((tool) => [tool.name, tool]));
  const running = new Set<string>();
  return {
    async call(request, signal) {
      const tool = byName.get(request.name);
      if (tool === undefined) return refused(unknownTool(request.name, [...byName.keys()]));
      if (signal.aborted) return refused({ reason: ErrorReason.CANCELED, message: "it was not sent" });
      const { callId } = request;
      if (running.has(callId)) return refused(idInUse(request.id));
      running.add(callId);
      try {
        return await callTool(options, tool, request, signal);
      } catch (thrown: unknown) {
        return refused(thrownFacts(thrown));
      } finally {
        running.delete(callId);
      }
    },
  };
}

async function callTool(
  options: RegistryCallerOptions,
  tool: ToolsetTool,
  request: ToolCall,
  signal: AbortSignal,
): Promise<ToolResult> {
  const { callId } = request;
  const { deviceId, input } = route(options.toolset.devices, tool, request);
  const onEvent = request.onEvent ?? (() => undefined);
  const approvalWaitMs = Math.min(options.approvalWaitMs ?? 60_000, 3_600_000);
  onEvent({ kind: "sent", callId });
  const end = await followCall({
    client: options.client,
    request: {
      device: deviceId,
      tool: tool.name,
      params: input,
      callId,
      purpose: (options.purpose ?? "").slice(0, 1000),
      client: "agent",
    },
    approvalWaitMs,
    cancelGraceMs: options.cancelGraceMs ?? 15_000,
    ...(options.retryDelaysMs && { retryDelaysMs: options.retryDelaysMs }),
    signal,
    onUpdate: onEvent,
  });
  const device = tool.devices.find((one) => one.id === deviceId)?.name ?? deviceId;
  const maxChars = options.maxResultChars ?? 60_000;
  const from = `device ${JSON.stringify(device)}`;
  return resultOf(end, { callId, from, maxChars, canceled: signal.aborted });
}

function route(devices: readonly DeviceName[], tool: ToolsetTool, request: ToolCall): RoutedInput {
  const [only] = tool.devices;
  if (devices.length === 1 && only !== undefined) return { deviceId: only.id, input: request.input };
  return takeDevice(tool.ownSchema, tool.devices, request.input);
}

function refused(error: ErrorFacts): ToolResult {
  return { content: errorText(error, "the registry"), isError: true };
}

function unknownTool(tool: string, available: readonly string[]): ErrorFacts {
  const message = `no tool ${JSON.stringify(tool)}`;
  return { reason: ErrorReason.UNKNOWN_TOOL, message, metadata: { available: available.join(", ") } };
}

function idInUse(id: string): ErrorFacts {
  return { reason: ErrorReason.CALL_ID_REUSED, message: `a call with the id ${JSON.stringify(id)} is still running` };
}
