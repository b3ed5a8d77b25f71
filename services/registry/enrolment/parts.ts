import type { TlsSource } from "../../../lib/identity/tls-source.ts";
import type { Logger } from "../../../lib/log/log.ts";
import type { Database } from "../../../lib/store/database.ts";
import type { GroupCommit } from "../../../lib/store/group-commit.ts";
import type { RegistryTables } from "../tables.ts";
import type { Authorities } from "./authorities.ts";
import type { Changes } from "./changes.ts";

/** What enrolment needs of the fleet. */
export interface EnrolledFleet {
  /** Whether the device may attach has changed: streams that it may not hold any more end, on every replica. */
  recheck(deviceId: string): Promise<void>;
  /** The device is none any more: its streams end and its name is free. */
  forget(deviceId: string): Promise<void>;
  /** The device that has this name, enrolled or dialled. */
  pinned(name: string): Promise<{ deviceId: string } | undefined>;
}

/** Devices enrol over TLS only: this is there where the registry serves it. */
export interface DevicePki {
  authorities: Authorities;
  /** The server's own files. */
  own: TlsSource;
}

/** What the RPCs of enrolment work on. */
export interface EnrolmentParts {
  db: Database<RegistryTables>;
  /** Its batches run one after another, those of the other replicas too: a job may read and then write. */
  writes: GroupCommit<RegistryTables>;
  changes: Changes;
  fleet: EnrolledFleet;
  /** Undefined where the registry serves no TLS. */
  pki: DevicePki | undefined;
  trustDomain: string;
  /** Where devices reach the registry. */
  urls(): readonly string[];
  /** The public keys that sign grants, 32 bytes each, the one that signs first. */
  grantKeys(): Promise<readonly Uint8Array[]>;
  /** How long certificates of devices are good for, in milliseconds. */
  certificateTtlMs: number;
  logger: Logger;
  now(): number;
}
