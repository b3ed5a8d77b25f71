import { create } from "@bufbuild/protobuf";
import { ExecutionOutputSchema, OutputStream } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import type { Watcher } from "./watcher.ts";

/** The most bytes of one chunk, as in device_agent_service.proto. */
export const MAX_CHUNK_BYTES = 64 * 1024;

/** The most bytes of one call that wait for a slow link. */
export const MAX_WAITING_BYTES = 1024 * 1024;

/** Sends what a program prints to those who watch the call. */
export interface LiveOutput {
  /** Takes the next bytes. Never blocks, because a program must not hang for a watcher that reads slowly. */
  push(stream: "stdout" | "stderr", bytes: Uint8Array): void;
  /** Sends at once what still waits. */
  end(): void;
}

interface Chunk {
  stream: OutputStream;
  data: Uint8Array;
}

/**
 * Numbers chunks from 0 and sends them as fast as the slowest watcher's link takes them. What does not fit into
 * MAX_WAITING_BYTES by then is left out, and a chunk says how much; the call's result holds head and tail anyway.
 */
export function createLiveOutput(callId: string, watchers: ReadonlySet<Watcher>): LiveOutput {
  const waiting: Chunk[] = [];
  let waitingBytes = 0;
  let leftOut = 0;
  let sequence = 0;
  let sending = false;

  const enqueue = (stream: OutputStream, data: Uint8Array): void => {
    waiting.push({ stream, data });
    waitingBytes += data.length;
  };
  const noteLeftOut = (): void => {
    if (leftOut === 0) return;
    enqueue(OutputStream.STDERR, Buffer.from(`\n[... ${leftOut} bytes left out ...]\n`));
    leftOut = 0;
  };
  const sendNext = (): void => {
    const chunk = waiting.shift();
    if (chunk === undefined) return;
    waitingBytes -= chunk.data.length;
    const output = create(ExecutionOutputSchema, { callId, sequence: sequence++, ...chunk });
    for (const watcher of watchers) watcher.output(output);
  };
  const send = async (): Promise<void> => {
    sending = true;
    while (waiting.length > 0) {
      await Promise.all([...watchers].map((watcher) => watcher.room()));
      sendNext();
    }
    sending = false;
  };

  return {
    push(stream, bytes) {
      if (waitingBytes + bytes.length > MAX_WAITING_BYTES && waitingBytes > 0) {
        leftOut += bytes.length;
        return;
      }
      noteLeftOut();
      const kind = stream === "stdout" ? OutputStream.STDOUT : OutputStream.STDERR;
      for (let at = 0; at < bytes.length; at += MAX_CHUNK_BYTES)
        enqueue(kind, bytes.subarray(at, at + MAX_CHUNK_BYTES));
      if (!sending) void send();
    },
    end() {
      noteLeftOut();
      while (waiting.length > 0) sendNext();
    },
  };
}
