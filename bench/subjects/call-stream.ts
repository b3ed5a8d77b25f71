import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import type { Call } from "../../gen/ts/reeve/registry/v1/call_pb.ts";
import {
  type CallerMessage,
  CallerMessageSchema,
  type CallToolRequestSchema,
  CallToolsRequestSchema,
  type RegistryService,
} from "../../gen/ts/reeve/registry/v1/registry_service_pb.ts";
import { createBatchQueue } from "../../lib/async/batch-queue.ts";

/** A caller's stream of calls. */
export interface CallStream {
  call(request: MessageInitShape<typeof CallToolRequestSchema>): Promise<Call>;
  /** Says that no more calls come: the stream ends. */
  end(): void;
}

let streams = 0;

/** Opens one stream for all calls. A failure of the stream ends the benchmark. */
export function openCallStream(client: Client<typeof RegistryService>): CallStream {
  const outgoing = createBatchQueue<CallerMessage>();
  const waiting = new Map<string, PromiseWithResolvers<Call>>();
  let next = 0;
  const prefix = `bench-${process.pid}-${Date.now()}-${streams++}`;

  async function* requests() {
    for await (const messages of outgoing.batches()) yield create(CallToolsRequestSchema, { messages });
  }
  const read = async () => {
    for await (const { events } of client.callTools(requests())) {
      for (const { callId, event } of events) {
        const one = waiting.get(callId);
        waiting.delete(callId);
        if (event.case === "call") one?.resolve(event.value);
        else if (event.case === "refusal") one?.reject(new Error(event.value.message));
        else if (one !== undefined) waiting.set(callId, one);
      }
    }
  };
  let isReading = false;
  const readOnce = () => {
    if (isReading) return;
    isReading = true;
    read().catch((error: unknown) => {
      for (const one of waiting.values()) one.reject(error);
    });
  };

  return {
    call(request) {
      readOnce();
      const callId = `${prefix}-${next++}`;
      const one = Promise.withResolvers<Call>();
      waiting.set(callId, one);
      const call = { ...request, callId };
      outgoing.push(create(CallerMessageSchema, { message: { case: "call", value: call } }));
      return one.promise;
    },
    end: () => outgoing.end(),
  };
}
