import { create } from "@bufbuild/protobuf";
import { type Output, OutputSchema, OutputStream } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { type CallEvent, CallEventSchema } from "../../../gen/ts/reeve/registry/v1/registry_service_pb.ts";
import { type BatchQueue, createBatchQueue } from "../../../lib/link/batch-queue.ts";
import { isEnd } from "./state.ts";

/** The most bytes of live output that wait for a caller that reads slowly. */
export const MAX_WAITING_BYTES = 4 * 1024 * 1024;

/** What one caller's live output of one call has come to. */
interface Printed {
  /** The next chunk's number. */
  sequence: number;
  /** Bytes that were left out since the last chunk. */
  leftOut: number;
}

/**
 * What happens to calls, on its way to one caller, in batches that fit into a message. States and ends always get there;
 * of live output, what does not fit into MAX_WAITING_BYTES by the time the caller reads is left out, and a chunk says how
 * much: the call's result holds head and tail anyway. Chunks are numbered anew for this caller, from 0 in each call.
 *
 * @param options.maxBytes about the most bytes in a batch, but for a single event that is larger. Default 1 MiB.
 */
export function createEventQueue(options: { maxBytes?: number } = {}): BatchQueue<CallEvent> {
  const queue = createBatchQueue<CallEvent>({ sizeOf, ...options });
  const calls = new Map<string, Printed>();
  let waitingBytes = 0;

  const printedOf = (callId: string): Printed => {
    const printed = calls.get(callId) ?? { sequence: 0, leftOut: 0 };
    calls.set(callId, printed);
    return printed;
  };
  const send = (output: Output, printed: Printed): void => {
    waitingBytes += output.data.length;
    const value = { ...output, sequence: printed.sequence++ };
    queue.push(create(CallEventSchema, { callId: output.callId, event: { case: "output", value } }));
  };
  const noteLeftOut = (callId: string): void => {
    const printed = calls.get(callId);
    if (printed === undefined || printed.leftOut === 0) return;
    const data = Buffer.from(`\n[... ${printed.leftOut} bytes left out ...]\n`);
    printed.leftOut = 0;
    send(create(OutputSchema, { callId, stream: OutputStream.STDERR, data }), printed);
  };
  const print = (output: Output): void => {
    if (output.data.length === 0) return;
    const printed = printedOf(output.callId);
    if (waitingBytes > 0 && waitingBytes + output.data.length > MAX_WAITING_BYTES) {
      printed.leftOut += output.data.length;
      return;
    }
    noteLeftOut(output.callId);
    send(output, printed);
  };

  return {
    push(event) {
      if (event.event.case === "output") return print(event.event.value);
      noteLeftOut(event.callId);
      queue.push(event);
      if (event.event.case === "call" && isEnd(event.event.value.state)) calls.delete(event.callId);
    },
    room: queue.room,
    end: queue.end,
    async *batches() {
      for await (const batch of queue.batches()) {
        for (const { event } of batch) if (event.case === "output") waitingBytes -= event.value.data.length;
        yield batch;
      }
    },
  };
}

/** About how large an event is on the wire, in bytes. */
function sizeOf({ event }: CallEvent): number {
  if (event.case === "output") return event.value.data.length + 128;
  const output = event.case === "call" ? event.value.output : undefined;
  return output === undefined ? 4096 : 4096 + JSON.stringify(output).length;
}
