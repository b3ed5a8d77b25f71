import { fromBinary } from "@bufbuild/protobuf";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { SignedEnvelope } from "../../../gen/ts/reeve/common/v1/signed_pb.ts";
import type { ControlFrame, DeviceFrame } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { ManifestSchema } from "../../../gen/ts/reeve/device/v1/manifest_pb.ts";
import { identityRefused } from "../../../lib/auth/peer.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { helloOf, requireNoHello } from "./one-hello.ts";

/** What a device says when it attaches. */
export interface AttachedHello {
  /** The device's id, as its certificate and its manifest say. */
  deviceId: string;
  /** The device's manifest. Nobody has checked its signature yet. */
  manifest: SignedEnvelope;
  /** How often it has dialed, this time included. */
  attachCount: number;
}

/** A device that wants to be let in. */
export interface ArrivingDevice extends AttachedHello {
  /** Aborted when its stream is over: whoever dialed has given this dial up. */
  left: AbortSignal;
  /** Resolves true when its stream has gone on showing life for three heartbeats, false where it does not. */
  livesOn(): Promise<boolean>;
}

/** One device's stream, from its Hello on. */
export interface AttachedStream {
  readonly hello: AttachedHello;
  /** False once somebody has become the stream's other end. */
  readonly isFree: boolean;
  /** Becomes the other end: these commands go out, and what comes back comes in, the Hello first. Once. */
  take(commands: AsyncIterable<ControlFrame>): AsyncIterator<DeviceFrame>;
  /** The commands of whoever took it. Ends with nothing where the stream ends before. */
  readonly commands: Promise<AsyncIterable<ControlFrame>>;
  /** Ends the stream with this error, which the device gets. */
  end(error: unknown): void;
}

/**
 * Waits for a stream's Hello. Rejects with NOT_READY where none comes in time, with INVALID_INPUT where something else
 * comes, and with IDENTITY_REFUSED where it is another device's.
 */
export async function readHello(
  deviceId: string,
  events: AsyncIterator<DeviceFrame>,
  waitMs: number,
): Promise<{ hello: AttachedHello; first: DeviceFrame }> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const message = `the device has not said who it is within ${waitMs} ms`;
    timer = setTimeout(() => reject(fault(ErrorReason.NOT_READY, {}, { message })), waitMs);
  });
  const next = events.next();
  // Its failure is the stream's, which has other ways to tell.
  next.catch(() => undefined);
  try {
    const { value, done } = await Promise.race([next, late]);
    if (done === true) throw fault(ErrorReason.NOT_READY, {}, { message: "the device left before it said who it is" });
    return { hello: helloIn(deviceId, value), first: value };
  } finally {
    clearTimeout(timer);
  }
}

function helloIn(deviceId: string, { events }: DeviceFrame): AttachedHello {
  const { manifest, attachCount } = helloOf(events);
  if (manifest === undefined) {
    const message = "Hello comes with the device's manifest";
    throw fault(ErrorReason.INVALID_INPUT, { field: "frame.events[0].hello.manifest", rule: "required" }, { message });
  }
  if (attachCount > Number.MAX_SAFE_INTEGER) {
    const message = `frame.events[0].hello.attach_count: at most ${Number.MAX_SAFE_INTEGER}`;
    const metadata = { field: "frame.events[0].hello.attach_count", rule: "uint64.lte" };
    throw fault(ErrorReason.INVALID_INPUT, metadata, { message });
  }
  if (deviceIdIn(manifest) !== deviceId) {
    throw identityRefused("role", deviceId, { message: "the manifest is that of another device" });
  }
  return { deviceId, manifest, attachCount: Number(attachCount) };
}

function deviceIdIn(manifest: SignedEnvelope): string | undefined {
  try {
    return fromBinary(ManifestSchema, manifest.payload).deviceId;
  } catch {
    return undefined;
  }
}

/** A stream whose Hello has been read. Free until somebody takes it. */
export function createAttachedStream(
  hello: AttachedHello,
  first: DeviceFrame,
  events: AsyncIterator<DeviceFrame>,
  end: (error: unknown) => void,
): AttachedStream {
  const commands = Promise.withResolvers<AsyncIterable<ControlFrame>>();
  let isFree = true;
  return {
    hello,
    commands: commands.promise,
    get isFree() {
      return isFree;
    },
    take(given) {
      isFree = false;
      commands.resolve(given);
      let isFirst = true;
      return {
        async next() {
          if (isFirst) {
            isFirst = false;
            return { done: false, value: first };
          }
          const next = await events.next();
          if (next.done === true) return next;
          try {
            requireNoHello(next.value.events);
          } catch (error: unknown) {
            end(error);
            throw error;
          }
          return next;
        },
        return(value) {
          end(fault(ErrorReason.NOT_READY, {}, { message: "the registry lets go of the stream; attach again" }));
          return Promise.resolve({ done: true, value });
        },
      };
    },
    end(error) {
      end(error);
      commands.resolve(nothing());
    },
  };
}

async function* nothing(): AsyncGenerator<never, void, void> {
  // No commands.
}
