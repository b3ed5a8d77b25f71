import { create } from "@bufbuild/protobuf";
import {
  ExecutionOutputSchema,
  type LedgerOutput,
  OutputStream,
} from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import type { Chunk } from "../output/chunk-source.ts";
import type { OutputRecorder, Outputs } from "../output/outputs.ts";
import type { Watcher } from "./watcher.ts";

/** The most bytes of one call that wait to be sent. */
export const MAX_WAITING_BYTES = 1024 * 1024;

/** What one call prints: recorded, and sent to those who follow it. */
export interface LiveOutput {
  /** Takes the next bytes. A promise asks the program to wait until it resolves: the slowest follower has no room. */
  push(stream: "stdout" | "stderr", bytes: Uint8Array): Promise<void> | undefined;
  /** No more comes. What the ledger is to keep, once the rest is written; undefined where nothing was printed. */
  record(): Promise<LedgerOutput> | undefined;
  /** The call's end is in the ledger: sends at once what still waits. */
  end(): void;
}

/**
 * Sends chunks at the pace of the slowest follower. A program that heeds the promises of `push` is followed without a gap.
 * Of one that does not, what is more than MAX_WAITING_BYTES is not sent, and the numbers of the chunks show that: a follower
 * reads it from the recording. The last chunk is sent in any case, so that no gap is at the end.
 */
export function createLiveOutput(
  callId: string,
  watchers: ReadonlySet<Watcher>,
  outputs: Pick<Outputs, "record">,
): LiveOutput {
  const waiting: Chunk[] = [];
  let recorder: OutputRecorder | undefined;
  let waitingBytes = 0;
  let notSent: Chunk | undefined;
  /** Resolves when nothing waits any more; undefined while nothing is being sent. */
  let sending: Promise<void> | undefined;

  const followers = (): Watcher[] => [...watchers].filter((one) => one.follows(callId));
  const isFollowed = (): boolean => {
    for (const one of watchers) if (one.follows(callId)) return true;
    return false;
  };
  const sendNext = (to: readonly Watcher[]): void => {
    const chunk = waiting.shift();
    if (chunk === undefined) return;
    waitingBytes -= chunk.data.length;
    const output = create(ExecutionOutputSchema, { callId, ...chunk });
    for (const watcher of to) watcher.output(output);
  };
  /** Sends while there is room. The result resolves when there may be some again; undefined when nothing waits. */
  const sendWhatFits = (): Promise<unknown> | undefined => {
    while (waiting.length > 0) {
      const to = followers();
      const full = to.map((one) => one.room(callId)).filter((room) => room !== undefined);
      if (full.length > 0) return Promise.all(full);
      sendNext(to);
    }
    return undefined;
  };
  const send = async (first: Promise<unknown>): Promise<void> => {
    for (let room: Promise<unknown> | undefined = first; room !== undefined; room = sendWhatFits()) await room;
    sending = undefined;
  };
  const onChunk = (chunk: Chunk): void => {
    if (!isFollowed()) return;
    if (waitingBytes > 0 && waitingBytes + chunk.data.length > MAX_WAITING_BYTES) {
      notSent = chunk;
      return;
    }
    notSent = undefined;
    waiting.push(chunk);
    waitingBytes += chunk.data.length;
    if (sending !== undefined) return;
    const room = sendWhatFits();
    if (room !== undefined) sending = send(room);
  };

  return {
    push(stream, bytes) {
      recorder ??= outputs.record(callId, { isFollowed, onChunk });
      const written = recorder.push(stream === "stdout" ? OutputStream.STDOUT : OutputStream.STDERR, bytes);
      if (written === undefined || sending === undefined) return written ?? sending;
      return Promise.all([written, sending]).then(() => undefined);
    },
    record: () => recorder?.end(),
    end() {
      if (notSent !== undefined) waiting.push(notSent);
      const to = followers();
      while (waiting.length > 0) sendNext(to);
      recorder?.close();
    },
  };
}
