import type { Command } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import type { Membership } from "../replicas/membership.ts";
import type { AttachedHello } from "./attach-stream.ts";
import type { DeviceOpener } from "./device-link.ts";
import type { DeviceStore } from "./device-store.ts";
import type { Directory } from "./directory.ts";
import type { ReadOptions } from "./read-device.ts";
import type { Welcome } from "./welcome.ts";

/** The streams that devices hold open to this replica. */
export interface AttachedStreams {
  /** The devices that have one, as they were let in. */
  held(): AttachedHello[];
  has(deviceId: string): boolean;
  /** Waits for the device's next stream and becomes it. */
  opener(deviceId: string): DeviceOpener;
  /** Ends the device's stream with this fault. */
  end(deviceId: string, error: Error): void;
  onAttach(listener: (hello: AttachedHello) => void): unknown;
}

/** Which keys devices are to trust for grants. */
export interface TrustedKeys {
  /** What brings a device of a version up to date, in order; nothing where it is. */
  trustFor(version: bigint): Command[];
  readonly version: bigint;
  onChange(listener: () => void): () => void;
}

/** What the fleet rests on. */
export interface FleetOptions extends ReadOptions {
  /** The way to each device that the registry dials, by its name. */
  openers: ReadonlyMap<string, DeviceOpener>;
  streams: AttachedStreams;
  /** The way to a device that another replica holds. Undefined where replicas cannot reach each other. */
  remote: ((replicaId: string, deviceId: string) => DeviceOpener) | undefined;
  /** Whether replicas can reach each other now, where they have a way. Default: always. */
  isBusUp?(): boolean;
  directory: Directory;
  store: DeviceStore;
  membership: Membership;
  keys?: TrustedKeys;
  welcome: Welcome;
  /** Tells the other replicas that the directory has changed. */
  nudge(): void;
  /** How often to look for what other replicas have changed, in milliseconds; 0 where there are none. */
  pollMs: number;
  now(): number;
}
