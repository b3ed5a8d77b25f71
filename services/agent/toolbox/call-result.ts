import { type CallEnd, stateName } from "../../../client/call-progress.ts";
import type { CompleteCall } from "../../../client/complete-call.ts";
import { CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import type { Refusal } from "../../../gen/ts/reeve/call/v1/call_service_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { faultDetail } from "../../../lib/fault/fault.ts";
import { endFacts, heldFacts, queuedFacts } from "../../../lib/model-tools/call-facts.ts";
import { wrapUntrusted } from "../../../lib/model-tools/envelope.ts";
import { type ErrorFacts, errorText, thrownFacts } from "../../../lib/model-tools/error-text.ts";
import { shortenJson } from "../../../lib/model-tools/shorten.ts";
import type { ToolResult } from "./toolbox.ts";

/** What a result is made with besides the call's end. */
export interface ResultFacts {
  callId: string;
  /** Whose data it is, such as `device "laptop"`. */
  from: string;
  /** The most characters of output that a model is given. */
  maxChars: number;
  /** The call was canceled by the run. */
  canceled: boolean;
}

/** What a model reads about a call's end. */
export function resultOf(end: CallEnd, facts: ResultFacts): ToolResult {
  switch (end.kind) {
    case "ended":
      return end.call.status.state === CallState.SUCCEEDED
        ? success(end.call, facts)
        : failure(end.call, endFacts(end.call), facts);
    case "held":
      return failure(end.call, heldFacts(end.call), facts);
    case "queued":
      return failure(end.call, queuedFacts(end.call), facts);
    case "refused":
      return { content: errorText(refusalFacts(end.refusal), facts.from), isError: true, callId: facts.callId };
    case "lost":
      return { content: errorText(lostFacts(end.cause, facts), facts.from), isError: true, callId: facts.callId };
  }
}

function success(call: CompleteCall, facts: ResultFacts): ToolResult {
  const output = call.status.output ?? {};
  const note = call.status.outputSanitized
    ? "\nControl characters or what looked like secrets were taken out of it."
    : "";
  return {
    content: wrapUntrusted(shortenJson(output, facts.maxChars), facts.from) + note,
    isError: false,
    ...identity(call),
  };
}

function failure(call: CompleteCall, error: ErrorFacts, facts: ResultFacts): ToolResult {
  return { content: errorText(error, facts.from), isError: true, ...identity(call) };
}

function identity(call: CompleteCall): Pick<ToolResult, "callId" | "state" | "approvalId"> {
  const { approval } = call.status;
  return { callId: call.id, state: stateName(call.status.state), ...(approval && { approvalId: approval.id }) };
}

function refusalFacts(refusal: Refusal): ErrorFacts {
  return {
    reason: refusal.error?.reason ?? ErrorReason.INTERNAL,
    message: refusal.message,
    metadata: refusal.error?.metadata ?? {},
    violations: refusal.error?.violations ?? [],
  };
}

function lostFacts(cause: unknown, { callId, canceled }: ResultFacts): ErrorFacts {
  if (faultDetail(cause) !== undefined && !canceled) return thrownFacts(cause);
  return {
    reason: ErrorReason.INTERRUPTED,
    message: canceled
      ? "it was asked to stop, and its end has not been reported"
      : "the link to the registry broke and did not come back",
    metadata: { call_id: callId },
    advice: "What became of the call is not known. Look before doing it again.",
  };
}
