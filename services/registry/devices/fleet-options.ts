import type { DeviceCommand } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import type { Membership } from "../cluster/membership.ts";
import type { Peers } from "../cluster/peers.ts";
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
  trustFor(version: bigint): DeviceCommand[];
  readonly version: bigint;
  onChange(listener: () => void): () => void;
}

/** What the fleet rests on. */
export interface FleetOptions extends ReadOptions {
  /** The way to each device that the registry dials, by its name. */
  openers: ReadonlyMap<string, DeviceOpener>;
  streams: AttachedStreams;
  /** The other replicas. Undefined: devices at another replica are not reached. */
  peers: Pick<Peers, "forwardDevice" | "problemOf"> | undefined;
  directory: Directory;
  store: DeviceStore;
  membership: Membership;
  keys?: TrustedKeys;
  welcome: Welcome;
  /** Has the other replicas read that the directory has changed. */
  wake(): void;
  /** How often to look for what other replicas have changed, in milliseconds; 0 where there are none. */
  pollMs: number;
  now(): number;
}
