import { create } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import {
  type CallEvent,
  CallEventSchema,
  type CallToolRequest,
  type CallToolsRequest,
  type CallToolsResponse,
  CallToolsResponseSchema,
} from "../../../gen/ts/reeve/call/v1/call_service_pb.ts";
import { ErrorDetailSchema } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { Ingress } from "../../../gen/ts/reeve/common/v1/ingress_pb.ts";
import type { Principal } from "../../../lib/auth/principal.ts";
import { faultDetail, reasonOf } from "../../../lib/fault/fault.ts";
import { invalidInput } from "../../../lib/fault/invalid-input.ts";
import { outageFault } from "../../../lib/store/outage.ts";
import { CommitUnknown } from "../../../lib/store/postgres-errors.ts";
import { callRequestFrom } from "./call-tool.ts";
import type { Calls, EndedCall } from "./calls.ts";
import { cancelCall } from "./cancel-call.ts";
import { createEventQueue, type EventQueue } from "./event-queue.ts";
import type { Face } from "./ingress.ts";
import { interrupted } from "./interrupted.ts";
import { isEnd } from "./lifecycle.ts";
import { callEvent, type OpenCall, type Watcher } from "./live-call.ts";
import { watchOutput } from "./watch-output.ts";

/**
 * A caller's stream: every call on it begins as it comes, and what happens to each is sent as it happens: held, queued for
 * its device, what the tool prints, the end. The caller closes its side when it has asked for all; the stream ends with
 * the last call. A caller that leaves changes nothing about its calls.
 */
export async function* callTools(
  calls: Calls,
  requests: AsyncIterable<CallToolsRequest>,
  principal: Principal,
  signal: AbortSignal,
  face: Face = Ingress.STREAM,
): AsyncGenerator<CallToolsResponse> {
  const events = createEventQueue();
  const watches = new Set<() => void>();
  const stop = () => {
    events.end();
    // Its calls may wait for days, and nothing is kept for it meanwhile.
    for (const unwatch of watches) unwatch();
    watches.clear();
  };
  signal.addEventListener("abort", stop, { once: true });
  void serve({ calls, principal, face, events, watches, signal }, requests);
  for await (const batch of events.batches()) yield create(CallToolsResponseSchema, { events: batch });
}

/** One caller's stream. */
interface CallStream {
  calls: Calls;
  principal: Principal;
  /** By which the stream came in. */
  face: Face;
  events: EventQueue;
  /** What ends the watch over each of its open calls. */
  watches: Set<() => void>;
  /** Aborted when the caller has left. */
  signal: AbortSignal;
}

async function serve(stream: CallStream, requests: AsyncIterable<CallToolsRequest>): Promise<void> {
  const { events } = stream;
  const running = new Set<Promise<void>>();
  const take = (work: Promise<void>) => {
    running.add(work);
    work.then(
      () => running.delete(work),
      (error: unknown) => events.end(ConnectError.from(error)),
    );
  };
  try {
    for await (const { frames } of requests) {
      for (const { frame } of frames) {
        if (frame.case === "call") take(follow(stream, frame.value));
        else if (frame.case === "cancelCallId") take(cancel(stream, frame.value));
      }
      await events.room();
    }
    await Promise.all(running);
    events.end();
  } catch (error: unknown) {
    events.end(ConnectError.from(error));
  }
}

/** Nothing is reported for a call that does not exist or has ended: its own events say all that the caller needs. */
async function cancel({ calls, principal }: CallStream, callId: string): Promise<void> {
  await cancelCall(calls, callId, principal).catch(() => undefined);
}

/** Reports what happens to one call. Throws where its end is not known here, although it was written down. */
async function follow(stream: CallStream, request: CallToolRequest): Promise<void> {
  const { calls, events, watches, signal } = stream;
  const begun = await begin(stream, request).catch((error: unknown) => refusal(request.callId, error));
  if ("event" in begun) return void events.push(begun);
  if (signal.aborted) return;
  const push = (event: CallEvent) => events.push(named(event, request.callId));
  if (!("watch" in begun)) {
    if (!isEnd(begun.call.status.state)) throw interrupted(request.callId, new Error("its end is not known here"));
    void push(callEvent(begun.call));
    return;
  }
  const reader: Watcher = (event) => (interesting(event) ? push(event) : undefined);
  const options = { states: isReported, from: request.outputFromSequence };
  const { stop, done } = watchOutput(begun, calls.outputOf(begun), reader, options);
  watches.add(stop);
  try {
    if (isReported(begun.call.status.state)) void push(callEvent(begun.call));
    await done;
    if (!isEnd(begun.call.status.state)) throw new Error("its end is not known here");
  } catch (cause: unknown) {
    throw interrupted(request.callId, cause);
  } finally {
    stop();
    watches.delete(stop);
  }
}

async function begin({ calls, principal, face }: CallStream, request: CallToolRequest): Promise<OpenCall | EndedCall> {
  if (request.callId === "") throw callIdRequired();
  return calls.begin(callRequestFrom(request, principal, face));
}

/** An event under the id by which the caller knows the call on this stream; see `scopedId`. */
function named(event: CallEvent, callId: string): CallEvent {
  if (event.callId === callId) return event;
  if (event.event.case !== "output") return { ...event, callId };
  return { ...event, callId, event: { case: "output", value: { ...event.event.value, callId } } };
}

/** Permitted and dispatched follow each other within a millisecond, and a caller can act on neither. */
function interesting({ event }: CallEvent): boolean {
  return event.case !== "call" || isReported(event.value.status?.state ?? CallState.UNSPECIFIED);
}

function isReported(state: CallState): boolean {
  return state === CallState.HELD || state === CallState.QUEUED || isEnd(state);
}

function callIdRequired() {
  const message = "required on a stream, where it names the call";
  return invalidInput([{ field: "callId", rule: "required", message }]);
}

function refusal(callId: string, cause: unknown): CallEvent {
  // A refusal would say that nothing was written and nothing ran.
  if (cause instanceof CommitUnknown) throw interrupted(callId, cause);
  const error = outageFault(cause) ?? cause;
  const detail = faultDetail(error) ?? create(ErrorDetailSchema, { reason: reasonOf(error) });
  const message = faultDetail(error) === undefined ? "internal error" : ConnectError.from(error).rawMessage;
  return create(CallEventSchema, { callId, event: { case: "refusal", value: { error: detail, message } } });
}
