import type { ExecutionOutput } from "../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";

/** The most bytes of one call's live output that wait for one reader. A device that keeps to its window stays far below. */
export const MAX_WAITING_BYTES = 4 * 1024 * 1024;

/** The same for all calls of one reader. */
const MAX_READER_BYTES = 32 * 1024 * 1024;

/** What may wait of the live output of calls for one reader, who may read slowly. */
export interface OutputRoom {
  /**
   * Sends a chunk, or leaves it out where there is no room for it. The promise resolves when the reader has taken the chunk,
   * or reads no more; undefined where it was left out.
   */
  print(output: ExecutionOutput): Promise<void> | undefined;
  /** Says what of a call was left out since its last chunk, if anything: to be asked for before its end is sent. */
  noteLeftOut(callId: string): void;
  /** The reader has taken a chunk that was sent. */
  taken(output: ExecutionOutput): void;
  /** The reader reads no more. */
  end(): void;
}

/** The numbers of chunks that were left out, the last one included. */
export interface LeftOut {
  from: number;
  last: number;
}

interface Waiting {
  bytes: number;
  leftOut: LeftOut | undefined;
  /** What resolves when each chunk is taken, in order. */
  chunks: PromiseWithResolvers<void>[];
}

/**
 * Keeps MAX_WAITING_BYTES of each call's output, or a single chunk that is larger. What is more is left out, as the chunks'
 * numbers show.
 *
 * @param send gets what the reader is to read, in order.
 * @param onLeftOut gets what was left out before the next chunk, or before the end.
 */
export function createOutputRoom(
  send: (output: ExecutionOutput) => void,
  onLeftOut: (callId: string, leftOut: LeftOut) => void = () => undefined,
): OutputRoom {
  const calls = new Map<string, Waiting>();
  let waitingBytes = 0;
  let hasEnded = false;

  const waitingOf = (callId: string): Waiting => {
    const known = calls.get(callId);
    if (known !== undefined) return known;
    const made: Waiting = { bytes: 0, leftOut: undefined, chunks: [] };
    calls.set(callId, made);
    return made;
  };
  const put = (waiting: Waiting, output: ExecutionOutput): Promise<void> => {
    const chunk = Promise.withResolvers<void>();
    waiting.chunks.push(chunk);
    waiting.bytes += output.data.length;
    waitingBytes += output.data.length;
    send(output);
    return chunk.promise;
  };
  const note = (callId: string, waiting: Waiting): void => {
    if (waiting.leftOut === undefined) return;
    onLeftOut(callId, waiting.leftOut);
    waiting.leftOut = undefined;
  };

  return {
    print(output) {
      if (hasEnded) return undefined;
      const { callId, data } = output;
      const waiting = waitingOf(callId);
      const isFull = waiting.bytes + data.length > MAX_WAITING_BYTES || waitingBytes + data.length > MAX_READER_BYTES;
      if (waiting.bytes > 0 && isFull) {
        waiting.leftOut = { from: waiting.leftOut?.from ?? output.sequence, last: output.sequence };
        return undefined;
      }
      note(callId, waiting);
      return put(waiting, output);
    },
    noteLeftOut(callId) {
      const waiting = calls.get(callId);
      if (waiting !== undefined) note(callId, waiting);
    },
    taken({ callId, data }) {
      const waiting = calls.get(callId);
      if (waiting === undefined) return;
      waiting.bytes -= data.length;
      waitingBytes -= data.length;
      waiting.chunks.shift()?.resolve();
      if (waiting.chunks.length === 0 && waiting.leftOut === undefined) calls.delete(callId);
    },
    end() {
      hasEnded = true;
      for (const { chunks } of calls.values()) for (const chunk of chunks) chunk.resolve();
      calls.clear();
    },
  };
}
