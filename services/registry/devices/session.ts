import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { ControlFrame, DeviceFrame } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { requireNoHello, type SessionHello } from "./hello.ts";

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

/** The stream under a session. */
export interface SessionStream {
  /** The frames that follow the hello. */
  frames: AsyncIterator<DeviceFrame>;
  /** The frame that began with the hello. */
  first: DeviceFrame;
  gone: AbortSignal;
  isAlive(): Promise<boolean>;
  /** Sends these commands from now on. */
  send(commands: AsyncIterable<ControlFrame>): void;
  end(error: unknown): void;
}

/** A session that is connecting. */
export function createDeviceSession(
  transport: DeviceSession["transport"],
  hello: SessionHello,
  keyringVersion: bigint,
  stream: SessionStream,
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
    keyringVersion,
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
