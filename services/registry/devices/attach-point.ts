import { create } from "@bufbuild/protobuf";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import {
  type AttachRequest,
  type AttachResponse,
  AttachResponseSchema,
} from "../../../gen/ts/reeve/device/v1/attach_service_pb.ts";
import {
  type ControlFrame,
  type DeviceFrame,
  DeviceFrameSchema,
} from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { toDevice } from "../../../lib/link/device-frames.ts";
import { framedEnd } from "../../../lib/link/framed.ts";
import { mapStream } from "../../../lib/link/map-stream.ts";
import { type AttachRateOptions, createAttachRate } from "./attach-rate.ts";
import {
  type ArrivingDevice,
  type AttachedHello,
  type AttachedStream,
  createAttachedStream,
  readHello,
} from "./attach-stream.ts";
import type { DeviceOpener } from "./device-link.ts";
import { showsLife } from "./shows-life.ts";

export { attachRoutes } from "./attach-routes.ts";
export type { AttachedHello } from "./attach-stream.ts";

/** How devices are let in. */
export interface AttachPointOptions {
  /** How often a stream shows that it lives, in milliseconds. Default 1000. */
  heartbeatMs?: number;
  /** How long a new stream may take to say whose it is, in milliseconds. Default 10000. */
  helloWaitMs?: number;
  /** How often a device may dial. */
  rate?: AttachRateOptions;
  /** Asked with each Hello before the stream takes the place of an older one. Throws or rejects with the device's fault. */
  admit?(device: ArrivingDevice): void | Promise<void>;
}

/** Where the streams of devices that dial in become openers, which is what links are made of. */
export interface AttachPoint {
  /**
   * The body of the RPC, for a device whose id is known. Throws NOT_READY where this replica is going away, and
   * RATE_LIMITED where the device dials too often. A dial ends an earlier one that was not let in yet.
   */
  attach(deviceId: string, requests: AsyncIterable<AttachRequest>, signal: AbortSignal): AsyncIterable<AttachResponse>;
  /** Waits for the device's next stream and becomes it. The first event is its Hello. Ends with the stream. */
  opener(deviceId: string): DeviceOpener;
  /** The devices that have a stream here, as they were let in. */
  held(): AttachedHello[];
  /** Whether the device has a stream here. */
  has(deviceId: string): boolean;
  /** How many devices have a stream here. */
  readonly size: number;
  /** Hears of each new stream, before anybody is given it. Returns how to stop. */
  onAttach(listener: (hello: AttachedHello) => void): () => void;
  /** Hears of each end that no newer stream of the device has brought about. Returns how to stop. */
  onDetach(listener: (deviceId: string) => void): () => void;
  /** Ends the device's stream with a fault, which the device gets. It dials again. */
  end(deviceId: string, error: Error): void;
  /** Tells every device to go elsewhere, and takes no new streams. What runs is still told. */
  drain(): void;
  /** Drains, and ends all streams. Safe to repeat. */
  close(): Promise<void>;
}

/** One stream, before anybody is let in on it. */
interface Dial {
  /** Aborted at its end. */
  left: AbortSignal;
  /** How many frames have come in. */
  heard(): number;
  /** Ends it with an error, which the device gets. */
  cut(error: unknown): void;
}

/** No streams yet. */
export function createAttachPoint(options: AttachPointOptions = {}): AttachPoint {
  const { heartbeatMs = 1000, helloWaitMs = 10_000 } = options;
  const rate = createAttachRate(options.rate);
  const streams = new Map<string, AttachedStream>();
  /** How to end the stream of a device that was not let in yet. */
  const pending = new Map<string, (error: unknown) => void>();
  const waiters = new Map<string, Set<() => void>>();
  const attachListeners = new Set<(hello: AttachedHello) => void>();
  const detachListeners = new Set<(deviceId: string) => void>();
  const cuts = new Set<AbortController>();
  const draining = new AbortController();

  const register = (stream: AttachedStream): void => {
    const { deviceId } = stream.hello;
    const older = streams.get(deviceId);
    streams.set(deviceId, stream);
    older?.end(fault(ErrorReason.NOT_READY, {}, { message: "the device has attached again" }));
    for (const listener of attachListeners) listener(stream.hello);
    for (const wake of [...(waiters.get(deviceId) ?? [])]) wake();
  };
  const unregister = (stream: AttachedStream): void => {
    const { deviceId } = stream.hello;
    if (streams.get(deviceId) !== stream) return;
    streams.delete(deviceId);
    for (const listener of detachListeners) listener(deviceId);
  };
  /** Waits until a device has said who it is and was let in. */
  const letIn = async (
    deviceId: string,
    events: AsyncIterator<DeviceFrame>,
    { left, heard, cut }: Dial,
  ): Promise<AttachedStream> => {
    pending.get(deviceId)?.(fault(ErrorReason.NOT_READY, {}, { message: "the device has dialed again" }));
    pending.set(deviceId, cut);
    try {
      const { hello, first } = await readHello(deviceId, events, helloWaitMs);
      left.throwIfAborted();
      await options.admit?.({ ...hello, left, livesOn: () => showsLife({ heard, left, heartbeatMs }) });
      left.throwIfAborted();
      return createAttachedStream(hello, first, events, cut);
    } finally {
      if (pending.get(deviceId) === cut) pending.delete(deviceId);
    }
  };
  /** The registry's end of one stream: reads the Hello, and lends itself to whoever takes the stream. */
  async function* hold(
    deviceId: string,
    incoming: AsyncIterable<DeviceFrame>,
    dial: Dial,
  ): AsyncGenerator<ControlFrame, void, void> {
    const stream = await letIn(deviceId, incoming[Symbol.asyncIterator](), dial);
    const { left } = dial;
    left.addEventListener("abort", () => {
      unregister(stream);
      stream.end(left.reason);
    });
    register(stream);
    yield* await stream.commands;
  }
  /** The device's next free stream; undefined where the signal comes first. */
  const nextOf = async (deviceId: string, signal: AbortSignal): Promise<AttachedStream | undefined> => {
    for (;;) {
      const stream = streams.get(deviceId);
      if (signal.aborted) return undefined;
      if (stream?.isFree) return stream;
      await new Promise<void>((resolve) => {
        const waiting = waiters.get(deviceId) ?? new Set();
        waiters.set(deviceId, waiting);
        const wake = (): void => {
          waiting.delete(wake);
          if (waiting.size === 0) waiters.delete(deviceId);
          signal.removeEventListener("abort", wake);
          resolve();
        };
        waiting.add(wake);
        signal.addEventListener("abort", wake, { once: true });
      });
    }
  };
  const shuttingDown = (): Error =>
    fault(ErrorReason.NOT_READY, {}, { message: "this registry is shutting down; attach elsewhere" });

  return {
    attach(deviceId, requests, signal) {
      if (draining.signal.aborted) throw shuttingDown();
      rate.take(deviceId);
      const cut = new AbortController();
      let frameCount = 0;
      const leave = (): void => cut.abort(signal.reason);
      const end = framedEnd<ControlFrame, DeviceFrame>(
        (incoming, left) => {
          cuts.add(cut);
          left.addEventListener("abort", () => {
            cuts.delete(cut);
            signal.removeEventListener("abort", leave);
          });
          return hold(deviceId, incoming, { left, heard: () => frameCount, cut: (error) => cut.abort(error) });
        },
        toDevice,
        // A device speaks first, so there is no telling what a silent one is.
        { heartbeatMs, plainAfterMs: Infinity, draining: draining.signal },
      );
      signal.addEventListener("abort", leave, { once: true });
      if (signal.aborted) leave();
      const frames = mapStream(requests, ({ frame }) => {
        frameCount++;
        return frame ?? create(DeviceFrameSchema);
      });
      return mapStream(end(frames, cut.signal), (frame) => create(AttachResponseSchema, { frame }));
    },
    opener: (deviceId) =>
      async function* open(commands, signal) {
        const stream = await nextOf(deviceId, signal);
        if (stream === undefined) return;
        const events = stream.take(commands);
        const leave = (): void => void events.return?.();
        signal.addEventListener("abort", leave, { once: true });
        try {
          yield* { [Symbol.asyncIterator]: () => events };
        } finally {
          signal.removeEventListener("abort", leave);
        }
      },
    held: () => [...streams.values()].map(({ hello }) => hello),
    has: (deviceId) => streams.has(deviceId),
    get size() {
      return streams.size;
    },
    onAttach(listener) {
      attachListeners.add(listener);
      return () => attachListeners.delete(listener);
    },
    onDetach(listener) {
      detachListeners.add(listener);
      return () => detachListeners.delete(listener);
    },
    end: (deviceId, error) => streams.get(deviceId)?.end(error),
    drain: () => draining.abort(shuttingDown()),
    async close() {
      draining.abort(shuttingDown());
      // A turn, in which the streams tell it.
      await new Promise((resolve) => setImmediate(resolve));
      for (const cut of [...cuts]) cut.abort(draining.signal.reason);
    },
  };
}
