import { followCall } from "../../../client/call-tool.ts";
import type { RegistryClient } from "../../../client/registry.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { thrownFacts } from "../../../lib/model-tools/error-text.ts";
import type { Toolset } from "../toolset/toolset.ts";
import { resultOf } from "./call-result.ts";
import type { ToolCaller } from "./followed-toolbox.ts";
import { type PreparedCall, prepareCall, refusedResult } from "./prepare-call.ts";
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
  /** The most characters of a call's output that the model is given. Default MAX_RESULT_CHARS. */
  maxResultChars?: number;
  /** Why the calls are wanted: shown to the human who decides. At most 1000 characters. Default empty. */
  purpose?: string;
  /** The pauses before each new try after the stream broke, in milliseconds. Default: those of the client. */
  retryDelaysMs?: readonly number[];
}

/** The most characters of a call's output that a model is given. */
export const MAX_RESULT_CHARS = 60_000;

/**
 * The tools of a toolset, called through the registry's gate. Every call goes out under an id that is the same
 * whenever the same use is sent again. Errors of the gate and of the device are results, as they were given.
 */
export function createRegistryCaller(options: RegistryCallerOptions): ToolCaller {
  const running = new Set<string>();
  return {
    async call(call, signal) {
      const prepared = prepareCall(options.toolset, call, options.purpose ?? "");
      if ("refused" in prepared) return prepared.refused;
      if (signal.aborted) return refusedResult({ reason: ErrorReason.CANCELED, message: "it was not sent" });
      if (running.has(call.callId)) return refusedResult(idInUse(call.id));
      running.add(call.callId);
      try {
        return await follow(options, prepared, call, signal);
      } catch (thrown: unknown) {
        return refusedResult(thrownFacts(thrown));
      } finally {
        running.delete(call.callId);
      }
    },
  };
}

async function follow(
  options: RegistryCallerOptions,
  { request, from }: PreparedCall,
  { callId, onEvent = () => undefined }: ToolCall,
  signal: AbortSignal,
): Promise<ToolResult> {
  onEvent({ kind: "sent", callId });
  const end = await followCall({
    client: options.client,
    request,
    approvalWaitMs: Math.min(options.approvalWaitMs ?? 60_000, 3_600_000),
    cancelGraceMs: options.cancelGraceMs ?? 15_000,
    ...(options.retryDelaysMs && { retryDelaysMs: options.retryDelaysMs }),
    signal,
    onUpdate: onEvent,
  });
  const maxChars = options.maxResultChars ?? MAX_RESULT_CHARS;
  return resultOf(end, { callId, from, maxChars, canceled: signal.aborted });
}

function idInUse(id: string) {
  const message = `a call with the id ${JSON.stringify(id)} is still running`;
  return { reason: ErrorReason.CALL_ID_REUSED, message };
}
