import type { Envelope } from "../../../gen/ts/reeve/common/v1/signed_pb.ts";
import type { Command } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import type { Membership } from "../replicas/membership.ts";
import type { DeviceOpener } from "./device-link.ts";
import type { DeviceStore } from "./device-store.ts";
import type { Directory } from "./directory.ts";
import type { ReadOptions } from "./read-device.ts";

/** A device that has attached, as it says. */
export interface AttachedHello {
  deviceId: string;
  manifest: Envelope;
  /** How often it has dialled, this time included. */
  attachCount: number;
}

/** The streams that devices hold open to this replica. */
export interface AttachedStreams {
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

/** What a device says of itself when it wants to attach. */
export interface Shown {
  name: string;
  labels: Record<string, string>;
  /** The registry dials it, as its configuration says, so that it need not have enrolled. */
  isDialled: boolean;
}

/** Whether devices are welcome, for whoever keeps that. */
export interface Welcome {
  /** Rejects with DEVICE_LOCKED or IDENTITY_REFUSED where a device must not be linked. Default: all are welcome. */
  mayAttach?(deviceId: string, shown: Shown): Promise<void>;
  /** A device was refused because its state is in two places. */
  onCloned?(deviceId: string): Promise<void>;
}

/** What the fleet rests on. */
export interface FleetOptions extends ReadOptions {
  /** The way to each device that the registry dials, by its name. */
  openers: ReadonlyMap<string, DeviceOpener>;
  streams: AttachedStreams;
  /** The way to a device that another replica holds. Undefined where replicas cannot reach each other. */
  remote: ((replicaId: string, deviceId: string) => DeviceOpener) | undefined;
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
