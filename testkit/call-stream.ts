import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import type { Call } from "../gen/ts/reeve/registry/v1/call_pb.ts";
import {
  type CallEvent,
  type CallerMessage,
  CallerMessageSchema,
  type CallToolRequestSchema,
  CallToolsRequestSchema,
  type RegistryService,
} from "../gen/ts/reeve/registry/v1/registry_service_pb.ts";
import { createBatchQueue } from "../lib/async/batch-queue.ts";
import { isEnd } from "../services/agent/toolbox/call-progress.ts";

/** A caller's own CallTools stream. */
export interface CallStream {
  call(request: MessageInitShape<typeof CallToolRequestSchema>): void;
  cancel(callId: string): void;
  /** The next event that is wanted; those before it are passed over. */
  next<T>(take: (event: CallEvent) => T | undefined): Promise<T>;
  /** The end of a call; events before it are passed over. */
  ended(callId: string): Promise<Call>;
  /** Every event so far, passed over or not. */
  readonly seen: readonly CallEvent[];
  /** Says that no more calls come, and resolves when the stream has ended, which is after its last call. */
  end(): Promise<void>;
}

/** Opens a stream of calls. */
export function openCallStream(registry: Client<typeof RegistryService>): CallStream {
  const outgoing = createBatchQueue<CallerMessage>();
  const seen: CallEvent[] = [];
  const events = eventsOf(registry, outgoing.batches());
  const send = (message: MessageInitShape<typeof CallerMessageSchema>["message"]) =>
    outgoing.push(create(CallerMessageSchema, message === undefined ? {} : { message }));
  const stream: CallStream = {
    call: (request) => send({ case: "call", value: request }),
    cancel: (callId) => send({ case: "cancelCallId", value: callId }),
    async next(take) {
      for (;;) {
        const { value, done } = await events.next();
        if (done) throw new Error(`the stream ended after ${seen.length} events`);
        seen.push(value);
        const taken = take(value);
        if (taken !== undefined) return taken;
      }
    },
    ended: (callId) => stream.next((event) => (event.callId === callId ? endIn(event) : undefined)),
    seen,
    async end() {
      outgoing.end();
      for await (const event of events) seen.push(event);
    },
  };
  return stream;
}

async function* eventsOf(
  registry: Client<typeof RegistryService>,
  batches: AsyncIterable<CallerMessage[]>,
): AsyncGenerator<CallEvent, undefined> {
  for await (const { events } of registry.callTools(requests(batches))) yield* events;
  return undefined;
}

async function* requests(batches: AsyncIterable<CallerMessage[]>) {
  for await (const messages of batches) yield create(CallToolsRequestSchema, { messages });
}

/** The call in an event, where it has ended. */
export function endIn({ event }: CallEvent): Call | undefined {
  return event.case === "call" && isEnd(event.value.state) ? event.value : undefined;
}

/** What a tool printed, in an event. */
export function printedIn({ event }: CallEvent): string | undefined {
  return event.case === "output" ? Buffer.from(event.value.data).toString() : undefined;
}
