import { create } from "@bufbuild/protobuf";
import { CallStatusSchema } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { type CallEvent, CallEventSchema } from "../../../gen/ts/reeve/call/v1/call_service_pb.ts";
import { createEventQueue } from "./event-queue.ts";
import { callEvent, type LiveCall } from "./live-call.ts";

/** What happens to a call that this replica owns, for another replica: its present state, then each change until its end. */
export async function* followOwned(live: LiveCall, signal: AbortSignal): AsyncGenerator<CallEvent[], void, void> {
  const events = createEventQueue();
  void events.push(callEvent(live.call));
  const unwatch = live.watch((event) => events.push(event));
  const stop = () => events.end();
  void live.ended.then(stop, stop);
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  try {
    for await (const batch of events.batches()) yield batch.map(withoutOutput);
  } finally {
    unwatch();
  }
}

/** The output of a call that has ended is in the database, where the follower reads it. */
function withoutOutput(event: CallEvent): CallEvent {
  if (event.event.case !== "call" || event.event.value.status?.output === undefined) return event;
  const { output: _, ...status } = event.event.value.status;
  const value = { ...event.event.value, status: create(CallStatusSchema, status) };
  return create(CallEventSchema, { callId: event.callId, event: { case: "call", value } });
}
