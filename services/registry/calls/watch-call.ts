import { create } from "@bufbuild/protobuf";
import { type WatchCallResponse, WatchCallResponseSchema } from "../../../gen/ts/reeve/call/v1/call_service_pb.ts";
import type { Principal } from "../../../lib/auth/principal.ts";
import type { Calls, EndedCall } from "./calls.ts";
import { createEventQueue, type EventQueue } from "./event-queue.ts";
import { withArguments } from "./governed-call.ts";
import { callEvent } from "./live-call.ts";
import { createOutputFollower } from "./output-follower.ts";
import { gapEvent, outputEvent, watchOutput } from "./watch-output.ts";

/** What to watch. */
export interface WatchOrder {
  callId: string;
  /** The number of the first chunk of output wanted. Default: what is printed from now on. */
  from?: number | undefined;
}

/** Sends how a call stands, then what happens to it until it ends. Of one that has ended, its output comes before that. */
export async function* watchCall(
  calls: Calls,
  { callId, from }: WatchOrder,
  principal: Principal,
  signal: AbortSignal,
): AsyncGenerator<WatchCallResponse> {
  const found = await calls.find(callId, principal);
  const events = createEventQueue();
  const shown = await calls.store.shownArguments(found.call.id);
  const now = callEvent(shown === undefined ? found.call : withArguments(found.call, shown));
  let stop = (): void => events.end();
  if ("watch" in found) {
    void events.push(now);
    const reading = watchOutput(found, calls.outputOf(found), (event) => events.push(event), { from });
    stop = () => {
      reading.stop();
      events.end();
    };
    // An interrupted call has no end to show; the next watch shows how the call stands.
    void reading.done.then(stop, stop);
  } else {
    const ended = from === undefined ? Promise.resolve() : sendOutput(calls, found, from, events, signal);
    void ended.then(() => {
      void events.push(now);
      events.end();
    });
  }
  signal.addEventListener("abort", () => stop(), { once: true });
  for await (const batch of events.batches()) {
    for (const event of batch) yield create(WatchCallResponseSchema, { event });
  }
}

/** Sends what a call that has ended has printed. Resolves when it was read, or cannot be. */
function sendOutput(
  calls: Calls,
  found: EndedCall,
  from: number,
  events: EventQueue,
  signal: AbortSignal,
): Promise<void> {
  const { id: callId } = found.call;
  const follower = createOutputFollower({
    callId,
    source: calls.outputOf(found),
    from,
    send: (output) => events.push(outputEvent(callId, output)),
    onGap: (gap) => void events.push(gapEvent(callId, gap)),
    isOver: () => signal.aborted,
  });
  return follower.finish(true).catch(() => undefined);
}
