import { create } from "@bufbuild/protobuf";
import { type WatchCallResponse, WatchCallResponseSchema } from "../../../gen/ts/reeve/call/v1/call_service_pb.ts";
import type { Principal } from "../../../lib/auth/principal.ts";
import type { Calls } from "./calls.ts";
import { createEventQueue } from "./event-queue.ts";
import { withArguments } from "./governed-call.ts";
import { callEvent } from "./live-call.ts";

/** Sends how a call stands, then what happens to it until it ends. */
export async function* watchCall(
  calls: Calls,
  callId: string,
  principal: Principal,
  signal: AbortSignal,
): AsyncGenerator<WatchCallResponse> {
  const found = await calls.find(callId, principal);
  const events = createEventQueue();
  const shown = await calls.store.shownArguments(found.call.id);
  void events.push(callEvent(shown === undefined ? found.call : withArguments(found.call, shown)));
  if ("watch" in found) {
    const unwatch = found.watch((event) => events.push(event));
    const stop = () => {
      unwatch();
      events.end();
    };
    signal.addEventListener("abort", stop, { once: true });
    // An interrupted call has no end to show; the next watch shows how the call stands.
    void found.ended.then(stop, stop);
  } else {
    events.end();
  }
  for await (const batch of events.batches()) {
    for (const event of batch) yield create(WatchCallResponseSchema, { event });
  }
}
