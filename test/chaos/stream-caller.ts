import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import type { Call } from "../../gen/ts/reeve/registry/v1/call_pb.ts";
import {
  type CallEvent,
  type CallerMessage,
  CallerMessageSchema,
  type CallToolRequestSchema,
  CallToolsRequestSchema,
  type RegistryService,
} from "../../gen/ts/reeve/registry/v1/registry_service_pb.ts";
import { type BatchQueue, createBatchQueue } from "../../lib/async/batch-queue.ts";
import { fault } from "../../lib/fault/fault.ts";
import { endIn } from "../../testkit/call-stream.ts";

/** Makes calls on one CallTools stream, which is opened when it is needed. */
export interface StreamCaller {
  /** Resolves with the call's end. Rejects with the stream's error where it breaks first, and where the call is refused. */
  call(
    request: MessageInitShape<typeof CallToolRequestSchema> & { callId: string },
    signal: AbortSignal,
  ): Promise<Call>;
  close(): void;
}

interface Stream {
  outgoing: BatchQueue<CallerMessage>;
  waiting: Map<string, PromiseWithResolvers<Call>>;
}

/** A caller that shares its stream between all its calls. */
export function createStreamCaller(registry: Client<typeof RegistryService>): StreamCaller {
  let open: Stream | undefined;
  const closing = new AbortController();

  const handle = ({ waiting }: Stream, event: CallEvent): void => {
    const one = waiting.get(event.callId);
    const call = endIn(event);
    if (call !== undefined) one?.resolve(call);
    if (event.event.case !== "refusal") return;
    const { error, message } = event.event.value;
    one?.reject(fault(error?.reason ?? 0, error?.metadata ?? {}, { message }));
  };
  const run = async (stream: Stream): Promise<void> => {
    let cause: unknown = new Error("the stream ended before the call");
    try {
      const responses = registry.callTools(requests(stream.outgoing.batches()), { signal: closing.signal });
      for await (const { events } of responses) for (const event of events) handle(stream, event);
    } catch (error: unknown) {
      cause = error;
    }
    if (open === stream) open = undefined;
    stream.outgoing.end();
    for (const one of stream.waiting.values()) one.reject(cause);
  };
  const opened = (): Stream => {
    if (open !== undefined) return open;
    open = { outgoing: createBatchQueue(), waiting: new Map() };
    void run(open);
    return open;
  };

  return {
    async call(request, signal) {
      const stream = opened();
      const { waiting, outgoing } = stream;
      const end = Promise.withResolvers<Call>();
      const leave = () => end.reject(signal.reason);
      signal.addEventListener("abort", leave, { once: true });
      waiting.set(request.callId, end);
      outgoing.push(create(CallerMessageSchema, { message: { case: "call", value: request } }));
      try {
        return await end.promise;
      } finally {
        signal.removeEventListener("abort", leave);
        waiting.delete(request.callId);
      }
    },
    close: () => closing.abort(),
  };
}

async function* requests(batches: AsyncIterable<CallerMessage[]>) {
  for await (const messages of batches) yield create(CallToolsRequestSchema, { messages });
}
