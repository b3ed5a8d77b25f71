import { create } from "@bufbuild/protobuf";
import { ExecutionOutputSchema, OutputStream } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import type { Watcher } from "./watcher.ts";

/** The most bytes of one chunk, as in device_agent_service.proto. */
export const MAX_CHUNK_BYTES = 64 * 1024;

/** The most bytes of one call that wait to be sent. */
export const MAX_WAITING_BYTES = 1024 * 1024;

/** Sends what a program prints to those who follow the call. */
export interface LiveOutput {
  /** Takes the next bytes. A promise asks the program to wait until it resolves: the slowest follower has no room. */
  push(stream: "stdout" | "stderr", bytes: Uint8Array): Promise<void> | undefined;
  /** Sends at once what still waits. */
  end(): void;
}

interface Chunk {
  stream: OutputStream;
  data: Uint8Array;
}

/**
 * Numbers chunks from 0 and sends them at the pace of the slowest follower. A program that heeds the promises of `push` loses
 * nothing. Of one that does not, what is more than MAX_WAITING_BYTES is left out, as is what is printed between two
 * followers, and a chunk says how much: the call's result holds head and tail anyway.
 */
export function createLiveOutput(callId: string, watchers: ReadonlySet<Watcher>): LiveOutput {
  const waiting: Chunk[] = [];
  let waitingBytes = 0;
  let leftOut = 0;
  let sequence = 0;
  /** Resolves when nothing waits any more; undefined while nothing is being sent. */
  let sending: Promise<void> | undefined;

  const followers = (): Watcher[] => [...watchers].filter((one) => one.follows(callId));
  const enqueue = (stream: OutputStream, data: Uint8Array): void => {
    waiting.push({ stream, data });
    waitingBytes += data.length;
  };
  const noteLeftOut = (): void => {
    if (leftOut === 0) return;
    enqueue(OutputStream.STDERR, Buffer.from(`\n[... ${leftOut} bytes left out ...]\n`));
    leftOut = 0;
  };
  const sendNext = (to: readonly Watcher[]): void => {
    const chunk = waiting.shift();
    if (chunk === undefined) return;
    waitingBytes -= chunk.data.length;
    const output = create(ExecutionOutputSchema, { callId, sequence: sequence++, ...chunk });
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

  return {
    push(stream, bytes) {
      const isFollowed = followers().length > 0;
      if (!isFollowed && sequence === 0) return undefined;
      if (!isFollowed || (waitingBytes > 0 && waitingBytes + bytes.length > MAX_WAITING_BYTES)) {
        leftOut += bytes.length;
        return sending;
      }
      noteLeftOut();
      const kind = stream === "stdout" ? OutputStream.STDOUT : OutputStream.STDERR;
      for (let at = 0; at < bytes.length; at += MAX_CHUNK_BYTES)
        enqueue(kind, bytes.subarray(at, at + MAX_CHUNK_BYTES));
      if (sending !== undefined) return sending;
      const room = sendWhatFits();
      if (room !== undefined) sending = send(room);
      return sending;
    },
    end() {
      noteLeftOut();
      const to = followers();
      while (waiting.length > 0) sendNext(to);
    },
  };
}
