import { create } from "@bufbuild/protobuf";
import {
  type ControlFrame,
  type DeviceCommand,
  type DeviceEvent,
  DeviceEventSchema,
  type DeviceFrame,
  DeviceFrameSchema,
  type DeviceHello,
  type OutputRead,
  type ReadOutputCommand,
} from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { createBatchQueue } from "../../../lib/async/batch-queue.ts";
import { eventShape } from "../../../lib/link/device-frames.ts";
import { createOutputRoom } from "../../../lib/link/output-room.ts";
import { type CallCommand, followOf } from "./device-commands.ts";
import type { DeviceEnd, TakeOutput } from "./device-link.ts";
import type { ReadOutput } from "./output-reads.ts";

/** The link to a device, as other replicas may use it. */
export interface SharedLink {
  /** The device's; throws DEVICE_OFFLINE while the link is down. */
  hello(): DeviceHello;
  /** Sends a command. Lost where the device is not reached. */
  send(command: DeviceCommand): void;
  /** A part of what a call has printed. Rejects where the device does not answer. */
  readOutput(command: ReadOutput): Promise<OutputRead>;
  /** Waits for the end of a call. The result stops that; undefined where the call was refused, which `resolve` was called with. */
  wait(command: CallCommand, onOutput: TakeOutput, resolve: (end: DeviceEnd) => void): (() => void) | undefined;
}

/** The streams of other replicas to one device. */
export interface DeviceShares {
  /** Opens one: it begins with the device's hello, and reports the calls that the replica asks for. */
  open(frames: AsyncIterable<ControlFrame>, signal: AbortSignal): AsyncGenerator<DeviceFrame>;
  /** Ends all with this error. */
  endAll(error: Error): void;
  readonly size: number;
}

/** The most bytes of live output in one frame to another replica. */
const SHARE_BATCH_BYTES = 256 * 1024;

/** Serves a link to other replicas. */
export function createDeviceShares(link: SharedLink): DeviceShares {
  const shares = new Set<(error: Error) => void>();
  return {
    async *open(frames, signal) {
      const hello = link.hello();
      const queue = createBatchQueue<DeviceEvent>({ sizeOf: eventShape.sizeOf, maxBytes: SHARE_BATCH_BYTES });
      const push = (event: DeviceEvent["event"]): void => queue.push(create(DeviceEventSchema, { event }));
      const room = createOutputRoom((value) => push({ case: "output", value }));
      /** By the ids of the calls that the replica waits for: what stops that. */
      const asked = new Map<string, () => void>();
      let isOver = false;
      const answer = async (command: ReadOutputCommand): Promise<void> => {
        // Without an answer the other replica gives up, as with a device that is gone.
        const read = await link.readOutput(command).catch(() => undefined);
        if (read !== undefined) push({ case: "outputRead", value: { ...read, readId: command.readId } });
      };
      const obey = (command: DeviceCommand): void => {
        const { case: kind, value } = command.command;
        if (isOver) return;
        // Nothing else: only the replica that holds the session sends the keys that a device is to trust.
        if (kind === "cancel" || kind === "follow") link.send(command);
        if (kind === "readOutput") void answer(value);
        if (kind !== "execute" && kind !== "reconcile") return;
        const { callId } = value;
        if (asked.has(callId)) {
          // Asked again on the same stream: its events are sent already.
          link.send(command);
          return;
        }
        const resolve = (end: DeviceEnd): void => {
          asked.delete(callId);
          if (end.kind !== "finished") return;
          room.noteLeftOut(callId);
          push({ case: "finished", value: end.finished });
        };
        const forget = link.wait(command.command, room.print, resolve);
        if (forget !== undefined) asked.set(callId, forget);
      };
      const end = (error: Error): void => {
        isOver = true;
        for (const [callId, forget] of asked) {
          forget();
          // No program may wait for a reader that has left.
          link.send(followOf(callId, 0n));
        }
        asked.clear();
        queue.end(error);
      };
      const leave = (): void => end(new Error("the session ended"));
      const read = async (): Promise<void> => {
        for await (const { commands } of frames) for (const command of commands) obey(command);
      };
      signal.addEventListener("abort", leave, { once: true });
      shares.add(end);
      push({ case: "hello", value: hello });
      read().catch((error: unknown) => end(error instanceof Error ? error : new Error(String(error))));
      try {
        for await (const events of queue.batches()) {
          yield create(DeviceFrameSchema, { events });
          for (const { event } of events) if (event.case === "output") room.taken(event.value);
        }
      } finally {
        shares.delete(end);
        signal.removeEventListener("abort", leave);
        leave();
      }
    },
    endAll(error) {
      for (const end of shares) end(error);
    },
    get size() {
      return shares.size;
    },
  };
}
