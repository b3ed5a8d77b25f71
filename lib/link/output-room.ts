import { create } from "@bufbuild/protobuf";
import {
  type ExecutionOutput,
  ExecutionOutputSchema,
  OutputStream,
} from "../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";

/** The most bytes of live output that wait for one reader. */
export const MAX_WAITING_BYTES = 4 * 1024 * 1024;

/** What may wait of the live output of calls for one reader, who may read slowly. */
export interface OutputRoom {
  /** Sends a chunk, or leaves it out where there is no room for it. */
  print(output: ExecutionOutput): void;
  /** Says how much of a call was left out since its last chunk, if anything: to be asked for before its end is sent. */
  noteLeftOut(callId: string): void;
  /** The reader has taken a chunk that was sent. */
  taken(output: ExecutionOutput): void;
}

/**
 * Keeps MAX_WAITING_BYTES of live output, or a single chunk that is larger. What is more is left out, and a chunk on
 * standard error says how much: a call's result holds head and tail anyway.
 *
 * @param send gets what the reader is to read, in order.
 */
export function createOutputRoom(send: (output: ExecutionOutput) => void): OutputRoom {
  const leftOut = new Map<string, number>();
  let waitingBytes = 0;
  const put = (output: ExecutionOutput): void => {
    waitingBytes += output.data.length;
    send(output);
  };
  const noteLeftOut = (callId: string): void => {
    const bytes = leftOut.get(callId);
    if (bytes === undefined) return;
    leftOut.delete(callId);
    const data = Buffer.from(`\n[... ${bytes} bytes left out ...]\n`);
    put(create(ExecutionOutputSchema, { callId, stream: OutputStream.STDERR, data }));
  };
  return {
    print(output) {
      const { callId, data } = output;
      if (waitingBytes > 0 && waitingBytes + data.length > MAX_WAITING_BYTES) {
        leftOut.set(callId, (leftOut.get(callId) ?? 0) + data.length);
        return;
      }
      noteLeftOut(callId);
      put(output);
    },
    noteLeftOut,
    taken(output) {
      waitingBytes -= output.data.length;
    },
  };
}
