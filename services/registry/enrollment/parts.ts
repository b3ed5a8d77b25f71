import type { Transaction } from "kysely";
import type { DeviceIdentity } from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import type { TlsSource } from "../../../lib/identity/tls-source.ts";
import type { Logger } from "../../../lib/log/log.ts";
import type { RateLimit } from "../../../lib/server/rate-limit.ts";
import type { Database } from "../../../lib/store/database.ts";
import type { GroupCommit } from "../../../lib/store/group-commit.ts";
import type { SlidingCounter } from "../devices/sliding-counter.ts";
import type { RegistryTables } from "../tables.ts";
import type { Authorities } from "./authorities.ts";
import type { Changes } from "./changes.ts";

/** What enrollment needs of the fleet. */
export interface EnrolledFleet {
  /** Whether the device may attach has changed: with this transaction, streams that it may not hold any more end. */
  recheck(trx: Transaction<RegistryTables>, deviceId: string): Promise<void>;
  /** The device was removed: with this transaction its streams end and its name is free. */
  forget(trx: Transaction<RegistryTables>, deviceId: string): Promise<void>;
  /** The name is this device's: with this transaction any other one that had it is forgotten. */
  free(trx: Transaction<RegistryTables>, name: string, deviceId: string): Promise<void>;
  /** Brings in at once, on every replica, what was just committed; they look by themselves a little later. */
  announce(): Promise<void>;
  /** The device that has this name, enrolled or dialed. */
  pinned(name: string): Promise<{ deviceId: string } | undefined>;
}

/** What a registry that serves TLS signs with; devices enroll over TLS only. */
export interface DevicePki {
  authorities: Authorities;
  /** The server's own files. */
  own: TlsSource;
}

/** The keys that sign grants, as one version of the keyring says. */
export interface GrantKeys {
  /** The keyring's version: a device that pins the keys trusts only newer ones. */
  version: bigint;
  /** The public keys, 32 bytes each, the one that signs first. */
  keys: readonly Uint8Array[];
}

export interface EnrollmentOptions {
  db: Database<RegistryTables>;
  fleet: EnrolledFleet;
  /** The server's own TLS files. Undefined: cleartext, and no device can enroll. */
  tls: TlsSource | undefined;
  trustDomain: string;
  /** The file of the key that seals private keys in the database; made when missing. */
  sealingKeyFile: string;
  /** Where devices reach the registry, most wanted first; asked when a token is made. */
  urls(): readonly string[];
  /** Writes a change into the audit log, for as long as it takes. The same change id again writes nothing. */
  recordIdentity(change: DeviceIdentity): Promise<bigint>;
  /** The keys that sign grants now. */
  grantKeys(): Promise<GrantKeys>;
  /** How long certificates of devices are valid, in milliseconds. Default a day. */
  certificateTtlMs?: number;
  /** How long a caller waits for a record, in milliseconds. Default 10000. */
  recordWaitMs?: number;
  logger: Logger;
  /** Milliseconds since 1970. Default the system's clock. */
  now?: () => number;
}

/** What the RPCs of enrollment work on. */
export interface EnrollmentParts
  extends Pick<EnrollmentOptions, "db" | "fleet" | "trustDomain" | "urls" | "grantKeys" | "logger"> {
  /** Its batches run one after another, those of the other replicas too: a job may read and then write. */
  writes: GroupCommit<RegistryTables>;
  changes: Changes;
  /** Undefined where the registry serves no TLS. */
  pki: DevicePki | undefined;
  certificateTtlMs: number;
  /** Join tokens that are unknown, or shown with another secret, by the remote address. */
  wrongTokens: RateLimit;
  /** Renewals with a number below one that was used before, which may have come late. */
  lowRenewals: SlidingCounter;
  now(): number;
}
