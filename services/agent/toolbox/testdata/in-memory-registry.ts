import type { JsonObject, MessageInitShape } from "@bufbuild/protobuf";
import { type ConnectRouter, createRouterTransport, type ServiceImpl } from "@connectrpc/connect";
import { registryClient } from "../../../../client/registry.ts";
import type { CallState } from "../../../../gen/ts/reeve/call/v1/call_pb.ts";
import {
  type CallEventSchema,
  CallService,
  type CallToolRequest,
} from "../../../../gen/ts/reeve/call/v1/call_service_pb.ts";
import { OutputStream } from "../../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { createBatchQueue } from "../../../../lib/async/batch-queue.ts";

type Event = MessageInitShape<typeof CallEventSchema>;

/** One stream of a caller, as the registry of a test sees it. */
export interface Stream {
  /** How many streams there were before. */
  index: number;
  emit(state: CallState, more?: JsonObject | object): void;
  print(sequence: number, data: Uint8Array, stream?: OutputStream): void;
  send(event: Event): void;
  /** Breaks the stream at once: what was sent last may be lost. */
  fail(error: Error): void;
  /** Ends the stream after what was sent. */
  end(): void;
}

/** What a registry of a test does. */
export interface Behavior {
  onCall(stream: Stream, call: CallToolRequest): void;
  onCancel?(stream: Stream): void;
  cancelCall?: ServiceImpl<typeof CallService>["cancelCall"];
  getCall?: ServiceImpl<typeof CallService>["getCall"];
}

/** An in-memory registry that does what a test says. */
export function inMemoryRegistry(behavior: Behavior) {
  const calls: CallToolRequest[] = [];
  let streams = 0;
  const routes = ({ service }: ConnectRouter) => {
    service(CallService, {
      ...(behavior.getCall === undefined ? {} : { getCall: behavior.getCall }),
      ...(behavior.cancelCall === undefined ? {} : { cancelCall: behavior.cancelCall }),
      async *callTools(requests) {
        const queue = createBatchQueue<Event>();
        const index = streams++;
        void read(requests, index, queue).catch(() => undefined);
        for await (const events of queue.batches()) yield { events };
      },
    });
  };

  async function read(
    requests: Parameters<ServiceImpl<typeof CallService>["callTools"]>[0],
    index: number,
    queue: ReturnType<typeof createBatchQueue<Event>>,
  ) {
    let callId = "";
    const stream: Stream = {
      index,
      emit: (state, more = {}) =>
        queue.push({ callId, event: { case: "call", value: { id: callId, status: { state, ...more } } } }),
      print: (sequence, data, from = OutputStream.STDOUT) =>
        queue.push({ callId, event: { case: "output", value: { callId, sequence, stream: from, data } } }),
      send: (event) => queue.push(event),
      fail: (error) => queue.end(error),
      end: () => queue.end(),
    };
    for await (const { frames } of requests) {
      for (const { frame } of frames) {
        if (frame.case === "call") {
          callId = frame.value.callId;
          calls.push(frame.value);
          behavior.onCall(stream, frame.value);
        } else if (frame.case === "cancelCallId") behavior.onCancel?.(stream);
      }
    }
  }
  return { client: registryClient(createRouterTransport(routes)), routes, calls };
}
