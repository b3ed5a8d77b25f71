import { ConnectError } from "@connectrpc/connect";
import { isEnd, stateName } from "../../../client/call-progress.ts";
import { type CompleteCall, completeCall } from "../../../client/complete-call.ts";
import type { RegistryClient } from "../../../client/registry.ts";
import { mayReconnect } from "../../../client/retry.ts";
import { type Call, CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault, faultDetail } from "../../../lib/fault/fault.ts";
import type { RunInput } from "../run-input/run-input.ts";
import { resultOf } from "./call-result.ts";
import { type PreparedCall, prepareCall } from "./prepare-call.ts";
import { MAX_RESULT_CHARS } from "./registry-caller.ts";
import type { CallView, Toolbox, ToolCall } from "./toolbox.ts";

/** How to hand calls over. */
export interface SubmittingToolboxOptions {
  client: Pick<RegistryClient, "callTool" | "getCall" | "cancelCall">;
  input: Pick<RunInput, "toolset" | "purpose" | "maxWaitSeconds" | "onDeviceGone">;
}

/** The longest that a registry queues a call, in seconds. */
const LONGEST_QUEUE_SECONDS = 7 * 24 * 3600;

/** How long one request may take, in milliseconds: none waits for a device or a person. */
const REQUEST_MS = 20_000;

/** How long the end of a canceled call is waited for, in seconds. */
const CANCEL_GRACE_SECONDS = 30;

/**
 * A toolbox that waits for nothing and keeps nothing: a call is handed over, and every later look asks the registry, which
 * alone says how a call ended. Throws where the registry cannot be reached, since asking again later is safe then; what it
 * refuses is a result.
 */
export function createSubmittingToolbox({ client, input }: SubmittingToolboxOptions): Toolbox {
  const { toolset, purpose, maxWaitSeconds, onDeviceGone } = input;
  const queueSeconds = onDeviceGone === "queue" ? Math.min(maxWaitSeconds, LONGEST_QUEUE_SECONDS) : 0;
  const limits = { timeoutMs: REQUEST_MS };

  const withCall = async (
    call: ToolCall,
    ask: (prepared: PreparedCall) => Promise<{ call?: Call | undefined }>,
    seen: (found: CompleteCall, prepared: PreparedCall) => CallView,
  ): Promise<CallView> => {
    const prepared = prepareCall(toolset, call, purpose);
    if ("refused" in prepared) return { kind: "ended", result: prepared.refused };
    try {
      const { call: found } = await ask(prepared);
      if (found === undefined) throw new Error("the registry returned no call");
      return seen(completeCall(found), prepared);
    } catch (thrown: unknown) {
      if (mayReconnect(thrown)) throw thrown;
      return { kind: "ended", result: refusal(thrown, call, prepared) };
    }
  };
  const ended = (found: CompleteCall, { from }: PreparedCall): CallView => ({
    kind: "ended",
    result: resultOf({ kind: "ended", call: found }, facts(found.id, from, false)),
  });

  return {
    submit: (call) =>
      withCall(
        call,
        ({ request }) => {
          call.onEvent?.({ kind: "sent", callId: call.callId });
          const queueTimeout = { seconds: BigInt(queueSeconds) };
          return client.callTool({ ...request, noWait: true, ...(queueSeconds > 0 && { queueTimeout }) }, limits);
        },
        (found, prepared) => {
          report(found, call);
          return isEnd(found.status.state) ? ended(found, prepared) : { kind: "waiting", seconds: maxWaitSeconds };
        },
      ),
    look: (call, { timeOver, canceled }) =>
      withCall(
        call,
        () => client.getCall({ callId: call.callId }, limits),
        (found, prepared) => {
          if (isEnd(found.status.state)) return ended(found, prepared);
          if (!timeOver) return { kind: "waiting", seconds: canceled ? CANCEL_GRACE_SECONDS : maxWaitSeconds };
          return afterWait(found, prepared, canceled, maxWaitSeconds);
        },
      ),
    cancel: (call) =>
      withCall(
        call,
        () => client.cancelCall({ callId: call.callId }, limits),
        (found, prepared) =>
          isEnd(found.status.state) ? ended(found, prepared) : { kind: "waiting", seconds: CANCEL_GRACE_SECONDS },
      ),
  };
}

/** A call that was waited for as long as the run waits. One that runs is waited for on: a tool has a time limit of its own. */
function afterWait(call: CompleteCall, { from }: PreparedCall, canceled: boolean, seconds: number): CallView {
  const about = facts(call.id, from, canceled);
  if (canceled) return { kind: "ended", result: resultOf({ kind: "lost", cause: undefined }, about) };
  switch (call.status.state) {
    case CallState.HELD:
      return { kind: "ended", result: resultOf({ kind: "held", call }, about) };
    case CallState.QUEUED:
      return { kind: "ended", result: resultOf({ kind: "queued", call }, about) };
    default:
      return { kind: "waiting", seconds };
  }
}

function report({ id, status }: CompleteCall, { onEvent }: ToolCall): void {
  onEvent?.({ kind: "state", callId: id, state: stateName(status.state) });
  if (status.state === CallState.HELD) onEvent?.({ kind: "held", callId: id, approvalId: status.approval?.id ?? "" });
}

function refusal(thrown: unknown, { callId }: ToolCall, { from }: PreparedCall) {
  const about = facts(callId, from, false);
  const error = faultDetail(thrown);
  if (error === undefined) return resultOf({ kind: "lost", cause: internal(thrown) }, about);
  const { rawMessage: message } = ConnectError.from(thrown);
  return resultOf({ kind: "refused", refusal: { $typeName: "reeve.call.v1.Refusal", error, message } }, about);
}

function internal(cause: unknown): unknown {
  return fault(ErrorReason.INTERNAL, {}, { message: "the registry refused without a reason", cause });
}

function facts(callId: string, from: string, canceled: boolean) {
  return { callId, from, maxChars: MAX_RESULT_CHARS, canceled };
}
