import { fromBinary } from "@bufbuild/protobuf";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { SignedEnvelope } from "../../../gen/ts/reeve/common/v1/signed_pb.ts";
import type {
  ControlFrame,
  DeviceEvent,
  DeviceFrame,
  DeviceHello,
} from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { type Manifest, ManifestSchema } from "../../../gen/ts/reeve/device/v1/manifest_pb.ts";
import { identityRefused } from "../../../lib/auth/peer.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { invalidField } from "../../../lib/fault/invalid-input.ts";
import { checkManifest } from "./manifest.ts";

/** A session between this process and a device, from its first byte to its last. */
export type SessionState =
  /** The stream is open; the device has not been admitted yet. */
  | "connecting"
  /** The device may connect, and its row says that this process holds it. */
  | "admitted"
  /** Commands and events flow. */
  | "live"
  /** It ends soon: the device has lost its admission, and what it runs is being canceled. */
  | "draining"
  /** It is over, for whatever reason. */
  | "gone";

/** What moves a session on. */
export type SessionEvent = "admit" | "open" | "drain" | "end";

/** Every step that a session may take; what is not here cannot happen. */
const TRANSITIONS: Readonly<Record<SessionState, Readonly<Partial<Record<SessionEvent, SessionState>>>>> = {
  connecting: { admit: "admitted", end: "gone" },
  admitted: { open: "live", drain: "draining", end: "gone" },
  live: { drain: "draining", end: "gone" },
  draining: { drain: "draining", end: "gone" },
  gone: { drain: "gone", end: "gone" },
};

/** The state after an event; undefined where the event is illegal in that state. */
export function nextState(state: SessionState, event: SessionEvent): SessionState | undefined {
  return TRANSITIONS[state][event];
}

/** A session whose device has said who it is. */
export interface DeviceSession {
  readonly state: SessionState;
  /** Who opened it: the device, or this process. */
  readonly transport: "attached" | "dialed";
  readonly deviceId: string;
  readonly name: string;
  readonly hello: SessionHello;
  /** The epoch in which the device's row names this process as the holder; 0 where it does not. */
  epoch: number;
  /** The version of the keys for grants that the device has, or was sent. */
  keyringVersion: bigint;
  /** Aborted when the session is gone. */
  readonly gone: AbortSignal;
  /** Resolves true when frames came in for three more heartbeats, false where the stream ends or falls silent before. */
  isAlive(): Promise<boolean>;
  /** Takes the step, and throws where it is illegal. */
  move(event: SessionEvent): void;
  /** Becomes the session's other end: commands go out, frames come in, the hello first. Once, when it is admitted. */
  open(commands: AsyncIterable<ControlFrame>, signal: AbortSignal): AsyncGenerator<DeviceFrame, void, void>;
  /** Ends it with this error, which the device gets. */
  end(error: unknown): void;
}

/** A stream to a device, before its handshake. */
export interface OpenStream {
  frames: AsyncIterator<DeviceFrame>;
  gone: AbortSignal;
  isAlive(): Promise<boolean>;
  /** Sends these commands from now on. */
  send(commands: AsyncIterable<ControlFrame>): void;
  end(error: unknown): void;
}

/** A session that is connecting; `first` is the frame that began with the hello. */
export function createDeviceSession(
  transport: DeviceSession["transport"],
  hello: SessionHello,
  stream: OpenStream & { first: DeviceFrame },
): DeviceSession {
  let state: SessionState = "connecting";
  const move = (event: SessionEvent): void => {
    const next = nextState(state, event);
    if (next === undefined) throw new Error(`a device session that is ${state} cannot ${event}`);
    state = next;
  };
  const end = (error: unknown): void => {
    move("end");
    stream.end(error);
  };
  stream.gone.addEventListener("abort", () => move("end"), { once: true });
  if (stream.gone.aborted) move("end");

  return {
    get state() {
      return state;
    },
    transport,
    deviceId: hello.manifest.deviceId,
    name: hello.manifest.name,
    hello,
    epoch: 0,
    keyringVersion: hello.keyringVersion,
    gone: stream.gone,
    isAlive: stream.isAlive,
    move,
    async *open(commands, signal) {
      move("open");
      stream.send(commands);
      const leave = () => end(attachAgain("the registry has closed the session"));
      signal.addEventListener("abort", leave, { once: true });
      if (signal.aborted) leave();
      try {
        yield stream.first;
        for (let next = await stream.frames.next(); next.done !== true; next = await stream.frames.next()) {
          requireNoHello(next.value.events);
          yield next.value;
        }
      } catch (error: unknown) {
        end(error);
        throw error;
      } finally {
        signal.removeEventListener("abort", leave);
        leave();
      }
    },
    end,
  };
}

/** The fault for a device whose session is over, while the device may connect. */
export function attachAgain(what: string): Error {
  return fault(ErrorReason.NOT_READY, {}, { message: `${what}; attach again` });
}

/** What a device says of itself at the start of a session. Its manifest is signed by the key behind its id. */
export interface SessionHello {
  manifest: Manifest;
  /** SHA-256 of the manifest's signed bytes, in hex. */
  digest: string;
  envelope: SignedEnvelope;
  /** How often the device has attached, this time included; 0 for one that is dialed. */
  attachCount: number;
  /** The version of the keys for grants that the device trusts. */
  keyringVersion: bigint;
}

/** Who a device must be: by the id of its certificate where it attaches, by the configured name where it is dialed. */
export type ExpectedDevice = { deviceId: string } | { name: string };

/**
 * Waits for the handshake: the first frame of a stream, which begins with the device's hello. Rejects with NOT_READY where
 * none comes in time, INVALID_INPUT where something else comes, and IDENTITY_REFUSED where it is another device's or its
 * manifest does not prove it.
 */
export async function readHello(
  expected: ExpectedDevice,
  frames: AsyncIterator<DeviceFrame>,
  waitMs: number,
): Promise<{ hello: SessionHello; first: DeviceFrame }> {
  const late = Promise.withResolvers<never>();
  const message = `the device has not said who it is within ${waitMs} ms`;
  const timer = setTimeout(() => late.reject(fault(ErrorReason.NOT_READY, {}, { message })), waitMs);
  try {
    for (;;) {
      const next = frames.next();
      // A failure after the deadline ends the stream, which reports it.
      next.catch(() => undefined);
      const { value, done } = await Promise.race([next, late.promise]);
      if (done === true) {
        throw fault(ErrorReason.NOT_READY, {}, { message: "the device left before it said who it is" });
      }
      // A frame without events is a heartbeat.
      if (value.events.length === 0 && "name" in expected) continue;
      return { hello: checkHello(expected, helloOf(value.events)), first: value };
    }
  } finally {
    clearTimeout(timer);
  }
}

function checkHello(expected: ExpectedDevice, said: DeviceHello): SessionHello {
  const { manifest: envelope, attachCount, keyringVersion } = said;
  if (envelope === undefined) throw malformed("manifest", "required", "a hello comes with the device's manifest");
  if (attachCount > Number.MAX_SAFE_INTEGER) {
    throw malformed("attach_count", "uint64.lte", `hello.attach_count: at most ${Number.MAX_SAFE_INTEGER}`);
  }
  if ("deviceId" in expected && claimedId(envelope.payload) !== expected.deviceId) {
    throw identityRefused("role", expected.deviceId, { message: "the manifest is that of another device" });
  }
  const name = "name" in expected ? expected.name : undefined;
  const check = checkManifest(envelope, name, undefined);
  if (!check.ok) {
    const who = "name" in expected ? expected.name : expected.deviceId;
    throw identityRefused("malformed", who, { message: `the device is not trusted: ${check.problem}` });
  }
  const count = "name" in expected ? 0 : Number(attachCount);
  return { manifest: check.manifest, digest: check.digest, envelope, attachCount: count, keyringVersion };
}

function claimedId(payload: Uint8Array): string | undefined {
  try {
    return fromBinary(ManifestSchema, payload).deviceId;
  } catch {
    return undefined;
  }
}

/** The hello that a session begins with. Throws INVALID_INPUT for anything else. */
export function helloOf([first, ...rest]: readonly DeviceEvent[]): DeviceHello {
  if (first?.event.case !== "hello") throw malformed("", "required", "the first event of a stream is a hello");
  requireNoHello(rest);
  return first.event.value;
}

/** Throws INVALID_INPUT for a hello among later events: who a device is does not change after its admission. */
export function requireNoHello(events: readonly DeviceEvent[]): void {
  if (events.some(({ event }) => event.case === "hello")) {
    throw malformed("", "first", "a device sends one hello in a stream, and first; connect again to change it");
  }
}

function malformed(field: string, rule: string, message: string): Error {
  const path = `frame.events.hello${field === "" ? "" : `.${field}`}`;
  return invalidField(path, rule, message, { text: message });
}
