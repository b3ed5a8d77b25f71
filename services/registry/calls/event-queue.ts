import { create } from "@bufbuild/protobuf";
import { type CallEvent, CallEventSchema } from "../../../gen/ts/reeve/call/v1/call_service_pb.ts";
import { type BatchQueue, createBatchQueue } from "../../../lib/async/batch-queue.ts";
import { errorBytes } from "../../../lib/fault/error-bytes.ts";
import { createOutputRoom } from "../../../lib/link/output-room.ts";
import { isEnd } from "./lifecycle.ts";

/** Events of calls for one reader. */
export interface EventQueue extends Omit<BatchQueue<CallEvent>, "push"> {
  /** Adds an event. Of output the promise resolves when the reader has taken it, or reads no more. */
  push(event: CallEvent): Promise<void> | undefined;
}

/**
 * What happens to calls, for one reader, in batches that fit into a message. States and ends are never left out;
 * of live output, what has no room by the time the caller reads is left out: see createOutputRoom. Chunks are numbered
 * anew for this caller, from 0 in each call.
 *
 * @param options.maxBytes about the most bytes in a batch, but for a single event that is larger. Default 1 MiB.
 */
export function createEventQueue(options: { maxBytes?: number } = {}): EventQueue {
  const queue = createBatchQueue<CallEvent>({ sizeOf, ...options });
  /** By call: the next chunk's number. */
  const sequences = new Map<string, number>();
  const room = createOutputRoom((output) => {
    const { callId } = output;
    const sequence = sequences.get(callId) ?? 0;
    sequences.set(callId, sequence + 1);
    queue.push(create(CallEventSchema, { callId, event: { case: "output", value: { ...output, sequence } } }));
  });

  return {
    push(event) {
      if (event.event.case === "output") {
        return event.event.value.data.length > 0 ? room.print(event.event.value) : undefined;
      }
      room.noteLeftOut(event.callId);
      queue.push(event);
      if (event.event.case === "call" && isEnd(event.event.value.state)) sequences.delete(event.callId);
      return undefined;
    },
    room: queue.room,
    end(error) {
      queue.end(error);
      room.end();
    },
    async *batches() {
      try {
        for await (const batch of queue.batches()) {
          yield batch;
          // Only now: the reader asks for the next batch.
          for (const { event } of batch) if (event.case === "output") room.taken(event.value);
        }
      } finally {
        room.end();
      }
    },
  };
}

/** About how large an event is on the wire, in bytes. */
function sizeOf({ event }: CallEvent): number {
  if (event.case === "output") return event.value.data.length + 128;
  if (event.case !== "call") return 4096;
  const { output, error, errorMessage } = event.value;
  const bytes = 4096 + errorMessage.length + errorBytes(error);
  return output === undefined ? bytes : bytes + JSON.stringify(output).length;
}
