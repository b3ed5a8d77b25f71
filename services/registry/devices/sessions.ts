import { create } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import {
  type AttachRequest,
  type AttachResponse,
  AttachResponseSchema,
  AttachService,
} from "../../../gen/ts/reeve/device/v1/attach_service_pb.ts";
import {
  type ControlFrame,
  type DeviceFrame,
  DeviceFrameSchema,
} from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { toDevice } from "../../../lib/link/device-frames.ts";
import { framedEnd } from "../../../lib/link/framed.ts";
import { onTick } from "../../../lib/link/framing/ticker.ts";
import { mapStream } from "../../../lib/link/stream.ts";
import { pingsKey, principalOf } from "../../../lib/server/context.ts";
import { createRateLimit, type RateLimitOptions } from "../../../lib/server/rate-limit.ts";
import type { Pings } from "../../../lib/wire/pings.ts";
import { createDialers, type DialOptions, noCommands } from "./dialing.ts";
import {
  attachAgain,
  createDeviceSession,
  type DeviceSession,
  type ExpectedDevice,
  type OpenStream,
  readHello,
} from "./session.ts";

export interface SessionsOptions {
  /** How often a link to a device that attaches is checked, in milliseconds. Default 1000. */
  heartbeatMs?: number | undefined;
  /** How long a new stream may take until its hello, in milliseconds. Default 10000. */
  helloWaitMs?: number | undefined;
  /** How often a device may attach. Default ten times at once, and once a second after that. */
  rate?: Partial<RateLimitOptions>;
  /** Decides about each session before it takes the place of an older one. Throws or rejects with the device's fault. */
  admit?(session: DeviceSession): void | Promise<void>;
  /** A session was admitted, and is the device's newest. */
  onAdmitted?(session: DeviceSession): void;
  /** A session is gone that no newer one of its device has replaced. Its admission may have been its last step. */
  onGone?(session: DeviceSession): void;
}

/** The sessions between this process and devices: one for each device. */
export interface Sessions {
  /**
   * The body of AttachService/Attach, for a device whose id is known. Throws NOT_READY where this replica is draining, and
   * RATE_LIMITED where the device attaches too often. It ends an earlier stream of the device that was not admitted yet.
   */
  attach(
    deviceId: string,
    requests: AsyncIterable<AttachRequest>,
    signal: AbortSignal,
    pings?: Pings,
  ): AsyncIterable<AttachResponse>;
  /** Holds a session to a device that is dialed, and dials again whenever that ends. */
  dial(name: string, dialer: DialOptions): void;
  /** The device's session, once it is admitted. */
  get(deviceId: string): DeviceSession | undefined;
  all(): DeviceSession[];
  readonly size: number;
  /** Dials now where that was waited for: a device may be admitted from now on. */
  wakeDialers(): void;
  /** Has every device that attached go elsewhere, and admits no new one. What runs is still reported. */
  drain(): void;
  /** Drains, and ends all sessions. Safe to repeat. */
  close(): Promise<void>;
}

/** How often a device may attach: it costs a transaction that all replicas wait for. */
const ATTACH_RATE = { burst: 10, everyMs: 1000, maxKeys: 100_000 };

export function createSessions(options: SessionsOptions = {}): Sessions {
  const { heartbeatMs = 1000, helloWaitMs = 10_000 } = options;
  const limit = { ...ATTACH_RATE, ...options.rate };
  const rate = createRateLimit(limit);
  const current = new Map<string, DeviceSession>();
  /** How to end the stream of a device that attaches and is not admitted yet. */
  const connecting = new Map<string, (error: unknown) => void>();
  const streams = new Set<(error: unknown) => void>();
  const draining = new AbortController();
  const dialers = createDialers((name, stream) => connect("dialed", { name }, stream));

  const register = (session: DeviceSession): void => {
    session.move("admit");
    const older = current.get(session.deviceId);
    current.set(session.deviceId, session);
    session.gone.addEventListener("abort", () => {
      if (current.get(session.deviceId) !== session) return;
      current.delete(session.deviceId);
      options.onGone?.(session);
      dialers.wake();
    });
    older?.end(fault(ErrorReason.NOT_READY, {}, { message: "the device has attached again" }));
    options.onAdmitted?.(session);
  };
  /** From the handshake to the admission. */
  const connect = async (
    transport: DeviceSession["transport"],
    expected: ExpectedDevice,
    stream: OpenStream,
  ): Promise<DeviceSession> => {
    const { hello, first } = await readHello(expected, stream.frames, helloWaitMs);
    stream.gone.throwIfAborted();
    const session = createDeviceSession(transport, hello, { ...stream, first });
    await options.admit?.(session);
    if (session.state === "gone") {
      options.onGone?.(session);
      throw stream.gone.reason;
    }
    register(session);
    return session;
  };
  /** This process's end of a stream that a device has opened. */
  async function* serve(deviceId: string, stream: Omit<OpenStream, "send">): AsyncGenerator<ControlFrame, void, void> {
    const commands = Promise.withResolvers<AsyncIterable<ControlFrame>>();
    connecting.get(deviceId)?.(fault(ErrorReason.NOT_READY, {}, { message: "the device has dialed again" }));
    connecting.set(deviceId, stream.end);
    try {
      await connect("attached", { deviceId }, { ...stream, send: commands.resolve });
    } finally {
      if (connecting.get(deviceId) === stream.end) connecting.delete(deviceId);
    }
    if (stream.gone.aborted) return;
    stream.gone.addEventListener("abort", () => commands.resolve(noCommands()), { once: true });
    yield* await commands.promise;
  }
  return {
    attach(deviceId, requests, signal, pings) {
      draining.signal.throwIfAborted();
      const waitMs = rate.waitMs(deviceId);
      if (waitMs > 0) throw tooOften(limit.everyMs, waitMs);
      rate.spend(deviceId);
      const cut = new AbortController();
      const end = (error: unknown): void => cut.abort(error);
      const leave = (): void => end(signal.reason);
      let frameCount = 0;
      let ask = (): void => undefined;
      const answer = framedEnd<ControlFrame, DeviceFrame>(
        (incoming, gone) => {
          streams.add(end);
          gone.addEventListener("abort", () => {
            streams.delete(end);
            signal.removeEventListener("abort", leave);
          });
          return serve(deviceId, {
            frames: incoming[Symbol.asyncIterator](),
            gone,
            isAlive: () => isAlive({ frames: () => frameCount, ask, gone, heartbeatMs }),
            end,
          });
        },
        toDevice,
        // A device speaks first, so a silent one may be anything.
        {
          heartbeatMs,
          pings,
          plainAfterMs: Infinity,
          draining: draining.signal,
          onOpen(asks) {
            ask = asks;
          },
        },
      );
      signal.addEventListener("abort", leave, { once: true });
      if (signal.aborted) leave();
      const frames = mapStream(requests, ({ frame }) => {
        frameCount++;
        return frame ?? create(DeviceFrameSchema);
      });
      return mapStream(answer(frames, cut.signal), (frame) => create(AttachResponseSchema, { frame }));
    },
    dial: dialers.dial,
    get: (deviceId) => current.get(deviceId),
    all: () => [...current.values()],
    get size() {
      return current.size;
    },
    wakeDialers: dialers.wake,
    drain: () => draining.abort(shuttingDown()),
    async close() {
      dialers.stop();
      draining.abort(shuttingDown());
      // A turn, in which the streams report it.
      await new Promise((resolve) => setImmediate(resolve));
      for (const end of [...streams]) end(draining.signal.reason);
      dialers.end(draining.signal.reason);
    },
  };
}

/** Registers AttachService: a device is who its certificate says. */
export function attachRoutes(sessions: Pick<Sessions, "attach">): (router: ConnectRouter) => void {
  return (router) =>
    router.service(AttachService, {
      attach: (requests, context) =>
        sessions.attach(principalOf(context).id, requests, context.signal, context.values.get(pingsKey)),
    });
}

function shuttingDown(): Error {
  return attachAgain("this registry is shutting down");
}

function tooOften(everyMs: number, waitMs: number): Error {
  const metadata = { limit: `${1000 / everyMs}/s`, retry_after_ms: String(waitMs) };
  const message = `the device attaches too often; try again in ${waitMs} ms`;
  return fault(ErrorReason.RATE_LIMITED, metadata, { message });
}

interface LivenessSource {
  /** How many frames have come in. */
  frames(): number;
  /** Has the device send one. */
  ask(): void;
  /** Aborted when the stream is over. */
  gone: AbortSignal;
  heartbeatMs: number;
}

/** A stream is alive when frames come in in so many intervals. */
const INTERVALS = 3;

/** So many intervals are waited for that. */
const MAX_INTERVALS = 30;

/**
 * Asks for frames, and resolves true when some have come in in three more intervals of a heartbeat; false as soon as the
 * stream is over, and where that takes 30. No pings: a proxy may answer those for a device that is gone. Counts ticks, so
 * that what waits for a busy process is read before it decides.
 */
function isAlive({ frames, ask, gone, heartbeatMs }: LivenessSource): Promise<boolean> {
  return new Promise((resolve) => {
    let alive = 0;
    let intervals = 0;
    let known = frames();
    const conclude = (isAlive: boolean): void => {
      stop();
      gone.removeEventListener("abort", leave);
      resolve(isAlive);
    };
    const leave = (): void => conclude(false);
    const stop = onTick(heartbeatMs, () => {
      intervals++;
      if (frames() > known) alive++;
      known = frames();
      if (alive >= INTERVALS) conclude(true);
      else if (intervals >= MAX_INTERVALS) conclude(false);
      else ask();
    });
    ask();
    gone.addEventListener("abort", leave, { once: true });
    if (gone.aborted) leave();
  });
}
