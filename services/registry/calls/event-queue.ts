import { create } from "@bufbuild/protobuf";
import {
  type CallEvent,
  CallEventSchema,
  type OutputGap,
  OutputGapSchema,
} from "../../../gen/ts/reeve/call/v1/call_service_pb.ts";
import { ErrorDetailSchema, ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { type BatchQueue, createBatchQueue } from "../../../lib/async/batch-queue.ts";
import { errorBytes } from "../../../lib/fault/error-bytes.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { createOutputRoom, type LeftOut } from "../../../lib/link/output-room.ts";

/** The limits of a queue of events. */
interface EventQueueOptions {
  maxBytes?: number;
  stallMs?: number;
}

/** Events of calls for one reader. */
export interface EventQueue extends Omit<BatchQueue<CallEvent>, "push"> {
  /** Adds an event. Of output the promise resolves when the reader has taken it, or reads no more. */
  push(event: CallEvent): Promise<void> | undefined;
}

/** How long a reader may leave live output unread before it is dropped, in milliseconds: its program waits meanwhile. */
const STALL_MS = 5 * 60_000;

/**
 * What happens to calls, for one reader, in batches that fit into a message. States and ends are never left out;
 * of live output, what has no room by the time the caller reads is left out: see createOutputRoom. A reader that leaves output unread for too long is dropped: what it would read
 * next is FOLLOWER_STALLED, and no program waits for it any more.
 *
 * @param options.maxBytes about the most bytes in a batch, but for a single event that is larger. Default 1 MiB.
 * @param options.stallMs how long is too long, in milliseconds. Default STALL_MS.
 */
export function createEventQueue({ maxBytes, stallMs = STALL_MS }: EventQueueOptions = {}): EventQueue {
  const queue = createBatchQueue<CallEvent>({ sizeOf, ...(maxBytes !== undefined && { maxBytes }) });
  const room = createOutputRoom(
    (value) => queue.push(create(CallEventSchema, { callId: value.callId, event: { case: "output", value } })),
    (callId, leftOut) =>
      queue.push(create(CallEventSchema, { callId, event: { case: "outputGap", value: unread(leftOut) } })),
  );

  const drop = (callId: string): void => {
    queue.end(stalled(callId, stallMs));
    room.end();
  };

  return {
    push(event) {
      if (event.event.case === "output") {
        return event.event.value.data.length > 0 ? room.print(event.event.value) : undefined;
      }
      room.noteLeftOut(event.callId);
      queue.push(event);
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
          const printed = batch.flatMap(({ event }) => (event.case === "output" ? [event.value] : []));
          const timer = printed[0] && setTimeout(drop, stallMs, printed[0].callId).unref();
          try {
            yield batch;
          } finally {
            clearTimeout(timer);
          }
          // Only now: the reader asks for the next batch.
          for (const output of printed) room.taken(output);
        }
      } finally {
        room.end();
      }
    },
  };
}

function unread({ from, last }: LeftOut): OutputGap {
  const message = "more was sent at once than could wait to be read";
  return create(OutputGapSchema, {
    fromSequence: from,
    untilSequence: last + 1,
    error: create(ErrorDetailSchema, { reason: ErrorReason.FOLLOWER_STALLED }),
    message,
  });
}

function stalled(callId: string, limitMs: number): Error {
  const message = `none of the call's output was read for ${limitMs / 1000} seconds: it goes on without this follower, and WatchCall follows it again`;
  return fault(ErrorReason.FOLLOWER_STALLED, { call_id: callId, limit_ms: String(limitMs) }, { message });
}

/** About how large an event is on the wire, in bytes. */
function sizeOf({ event }: CallEvent): number {
  if (event.case === "output") return event.value.data.length + 128;
  if (event.case !== "call") return 4096;
  const { output, error, errorMessage = "" } = event.value.status ?? {};
  const bytes = 4096 + errorMessage.length + errorBytes(error);
  return output === undefined ? bytes : bytes + JSON.stringify(output).length;
}
