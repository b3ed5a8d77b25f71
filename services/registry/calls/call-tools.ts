import { create } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { ErrorDetailSchema, ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { Source } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { CallState } from "../../../gen/ts/reeve/registry/v1/call_pb.ts";
import {
  type CallEvent,
  CallEventSchema,
  type CallToolRequest,
  type CallToolsRequest,
  type CallToolsResponse,
  CallToolsResponseSchema,
} from "../../../gen/ts/reeve/registry/v1/registry_service_pb.ts";
import type { Principal } from "../../../lib/auth/principal.ts";
import { fault, faultDetail, reasonOf } from "../../../lib/fault/fault.ts";
import type { BatchQueue } from "../../../lib/link/batch-queue.ts";
import { outageFault } from "../../../lib/store/outage.ts";
import { CommitUnknown } from "../../../lib/store/postgres-errors.ts";
import { brokenOff } from "./broken-off.ts";
import { wishOf } from "./call-tool.ts";
import type { Calls, EndedCall } from "./calls.ts";
import { cancelCall } from "./cancel-call.ts";
import { createEventQueue } from "./event-queue.ts";
import { callEvent, type LiveCall } from "./live-call.ts";
import { isEnd } from "./state.ts";

/**
 * A caller's stream: every call on it begins as it comes, and what happens to each is sent as it happens: held, kept for its device, what
 * the tool prints, the end. The caller closes its side when it has asked for all; the stream ends with the last call.
 */
export async function* callTools(
  calls: Calls,
  requests: AsyncIterable<CallToolsRequest>,
  principal: Principal,
  signal: AbortSignal,
): AsyncGenerator<CallToolsResponse> {
  const events = createEventQueue();
  const stop = () => events.end();
  signal.addEventListener("abort", stop, { once: true });
  void serve(calls, requests, principal, events);
  for await (const batch of events.batches()) yield create(CallToolsResponseSchema, { events: batch });
}

async function serve(
  calls: Calls,
  requests: AsyncIterable<CallToolsRequest>,
  principal: Principal,
  events: BatchQueue<CallEvent>,
): Promise<void> {
  const running = new Set<Promise<void>>();
  const take = (work: Promise<void>) => {
    running.add(work);
    work.then(
      () => running.delete(work),
      (error: unknown) => events.end(ConnectError.from(error)),
    );
  };
  try {
    for await (const { messages } of requests) {
      for (const { message } of messages) {
        if (message.case === "call") take(follow(calls, message.value, principal, events));
        else if (message.case === "cancelCallId") take(cancel(calls, message.value, principal));
      }
      await events.room();
    }
    await Promise.all(running);
    events.end();
  } catch (error: unknown) {
    events.end(ConnectError.from(error));
  }
}

/** Nothing is said of a call that is not there or has ended: its own events tell the caller all there is to know. */
async function cancel(calls: Calls, callId: string, principal: Principal): Promise<void> {
  await cancelCall(calls, callId, principal).catch(() => undefined);
}

/** Tells what happens to one call. Throws where its end cannot be told, although it was written down. */
async function follow(
  calls: Calls,
  request: CallToolRequest,
  principal: Principal,
  events: BatchQueue<CallEvent>,
): Promise<void> {
  const begun = await begin(calls, request, principal).catch((error: unknown) => refusal(request.callId, error));
  if ("event" in begun) return events.push(begun);
  const unwatch = "watch" in begun ? begun.watch((event) => interesting(event) && events.push(event)) : undefined;
  if (isWorthTelling(begun.call.state)) events.push(callEvent(begun.call));
  const { state } = await begun.ended.catch((cause: unknown): never => {
    throw brokenOff(request.callId, cause);
  });
  unwatch?.();
  if (!isEnd(state)) throw brokenOff(request.callId);
}

async function begin(calls: Calls, request: CallToolRequest, principal: Principal): Promise<LiveCall | EndedCall> {
  if (request.callId === "") throw callIdRequired();
  return calls.begin(wishOf(request, principal, Source.STREAM));
}

/** Permitted and dispatched follow each other within a millisecond and tell a caller nothing it can act on. */
function interesting({ event }: CallEvent): boolean {
  return event.case !== "call" || isWorthTelling(event.value.state);
}

function isWorthTelling(state: CallState): boolean {
  return state === CallState.HELD || state === CallState.QUEUED || isEnd(state);
}

function callIdRequired() {
  return fault(
    ErrorReason.INVALID_INPUT,
    { field: "callId", rule: "required" },
    { message: "callId: required on a stream, where it names the call" },
  );
}

function refusal(callId: string, cause: unknown): CallEvent {
  // A refusal would say that nothing was written and nothing ran.
  if (cause instanceof CommitUnknown) throw brokenOff(callId, cause);
  const error = outageFault(cause) ?? cause;
  const detail = faultDetail(error) ?? create(ErrorDetailSchema, { reason: reasonOf(error) });
  const message = faultDetail(error) === undefined ? "internal error" : ConnectError.from(error).rawMessage;
  return create(CallEventSchema, { callId, event: { case: "refusal", value: { error: detail, message } } });
}
