import { create } from "@bufbuild/protobuf";
import { CallSchema } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import {
  type CallEvent,
  CallEventSchema,
  CallToolsResponseSchema,
} from "../../../gen/ts/reeve/call/v1/call_service_pb.ts";
import { CancelSessionSchema, OpenCallSchema } from "../../../gen/ts/reeve/cluster/v1/replica_pb.ts";
import { createEventQueue } from "../calls/event-queue.ts";
import { callEvent, type LiveCall, type Watcher } from "../calls/live-call.ts";
import type { Session } from "./session.ts";
import type { Sessions } from "./sessions.ts";

/** About the most bytes of events in one message: far below what a NATS server carries. */
const MESSAGE_BYTES = 128 * 1024;

/**
 * Asks the replica that leads a call to tell what happens to it, from how it stands now. Returns when it tells no more,
 * for whatever reason. When the signal aborts, the call is to be canceled.
 */
export async function askCall(
  sessions: Pick<Sessions, "open">,
  owner: string,
  callId: string,
  tell: Watcher,
  canceled: AbortSignal,
): Promise<void> {
  const session = sessions.open(owner, { case: "openCall", value: create(OpenCallSchema, { callId }) });
  const cancel = () => session.send({ case: "cancel", value: create(CancelSessionSchema) });
  canceled.addEventListener("abort", cancel, { once: true });
  if (canceled.aborted) cancel();
  try {
    for await (const message of session.messages()) {
      if (message.case === "callEvents") for (const event of message.value.events) tell(event);
    }
  } catch {
    // Lost: whoever asked looks into the database, and asks again.
  } finally {
    canceled.removeEventListener("abort", cancel);
    session.close();
  }
}

/** Tells another replica what happens to a call that this one leads, until its end. */
export async function serveCall(session: Session, live: LiveCall): Promise<void> {
  const events = createEventQueue({ maxBytes: MESSAGE_BYTES });
  events.push(callEvent(live.call));
  const unwatch = live.watch((event) => events.push(event));
  const stop = () => events.end();
  void live.ended.then(stop, stop);
  session.over.addEventListener("abort", stop, { once: true });
  void obey(session, live);
  try {
    for await (const batch of events.batches()) {
      session.send({
        case: "callEvents",
        value: create(CallToolsResponseSchema, { events: batch.map(withoutOutput) }),
      });
      // The pace is the server's: what a tool prints faster is left out by the queue.
      await session.flush();
    }
    session.close();
  } catch (error: unknown) {
    session.close(error instanceof Error ? error.message : String(error));
  } finally {
    unwatch();
  }
}

async function obey(session: Session, live: LiveCall): Promise<void> {
  try {
    for await (const message of session.messages()) if (message.case === "cancel") live.canceled.abort();
  } catch {
    // The session is over, and nothing has to be undone.
  }
}

/** The output of a call may be larger than a message; whoever asked reads it in the database. */
function withoutOutput(event: CallEvent): CallEvent {
  if (event.event.case !== "call" || event.event.value.output === undefined) return event;
  const { output: _, ...call } = event.event.value;
  return create(CallEventSchema, { callId: event.callId, event: { case: "call", value: create(CallSchema, call) } });
}
