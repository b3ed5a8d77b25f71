import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { errorText, thrownFacts } from "../../../lib/model-tools/error-text.ts";
import { type CallView, callAnswer, type Toolbox, type ToolCall, type ToolResult } from "./toolbox.ts";

/** Calls a tool and stays with the call until its end. */
export interface ToolCaller {
  /**
   * What goes wrong is a result with `isError`.
   *
   * @param signal aborting it cancels the call where it runs; the call is waited for in any case.
   */
  call(request: ToolCall, signal: AbortSignal): Promise<ToolResult>;
}

interface Followed {
  abort: AbortController;
  result?: ToolResult;
}

/**
 * A toolbox over a caller that stays with each call and so reports what it prints as it prints it. The calls are lost with
 * the process.
 *
 * @param deliver receives the answer of a call that has ended.
 */
export function createFollowedToolbox(caller: ToolCaller, deliver: (name: string, value: true) => void): Toolbox {
  const followed = new Map<string, Followed>();

  const follow = async (call: ToolCall, one: Followed): Promise<void> => {
    one.result = await caller.call(call, one.abort.signal).catch((thrown: unknown) => ({
      content: errorText(thrownFacts(thrown), "the run"),
      isError: true,
    }));
    deliver(callAnswer(call.callId), true);
  };

  const view = ({ callId }: ToolCall): CallView => {
    const one = followed.get(callId);
    if (one === undefined) return { kind: "ended", result: unknownCall(callId) };
    if (one.result === undefined) return { kind: "waiting" };
    followed.delete(callId);
    return { kind: "ended", result: one.result };
  };

  return {
    async submit(call) {
      const one = { abort: new AbortController() };
      followed.set(call.callId, one);
      void follow(call, one);
      return { kind: "waiting" };
    },
    look: async (call) => view(call),
    async cancel(call) {
      followed.get(call.callId)?.abort.abort();
      return { kind: "waiting" };
    },
  };
}

function unknownCall(callId: string): ToolResult {
  const facts = { reason: ErrorReason.INTERRUPTED, message: "the call is not followed here", metadata: { callId } };
  return { content: errorText(facts, "the run"), isError: true, callId };
}
