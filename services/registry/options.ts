import type { Registry as MetricsRegistry } from "prom-client";
import type { EventBus } from "../../lib/events/bus.ts";
import type { Sealer } from "../../lib/identity/sealer.ts";
import type { Logger } from "../../lib/log/log.ts";
import type { SharedDatabase } from "../../lib/store/group-commit.ts";
import type { TokenStatuses } from "./calls/token-statuses.ts";
import type { PeersOptions } from "./cluster/peers.ts";
import type { RegistryConfig } from "./config.ts";
import type { AdmissionPolicy } from "./devices/admission.ts";
import type { DeviceDialer } from "./devices/device-link.ts";
import type { ExtensionSettings } from "./enrollment/extension.ts";
import type { PolicyDialer } from "./policy-client/policy-link.ts";
import type { RegistryTables } from "./tables.ts";

export interface RegistryOptions {
  config: RegistryConfig;
  /**
   * The database, where it is open already, with the registry's tables, and policy writes to it as well: a call then shares
   * its decision's commit. It stays open. Default: one of the registry's own, as the configuration says.
   */
  database?: SharedDatabase<RegistryTables>;
  /** The way to policy. */
  policy: PolicyDialer;
  /** The way to each device that is dialed, by its name. Others attach. */
  devices: ReadonlyMap<string, DeviceDialer>;
  bus: EventBus;
  /** Connects to another replica, as this registry. Default: each replica serves only the devices whose sessions it holds. */
  peerTransport?: PeersOptions["transportTo"] | undefined;
  /** Which devices may connect. Default: those that have enrolled, and those that are dialed. */
  admission?: AdmissionPolicy;
  /** How devices enroll. Default: they cannot, because there is no TLS. */
  enrollment?: Partial<ExtensionSettings>;
  /** Seals what calls say in the database. Default: with a key in the state folder; needed on PostgreSQL. */
  sealer?: Sealer;
  /** Whether those whose calls waited for a device may still ask. Default: all may. */
  tokenStatuses?: TokenStatuses;
  /** Where the registry's own metrics go. Default nowhere. */
  metrics?: MetricsRegistry;
  logger: Logger;
  /** Milliseconds since 1970. Default the system's clock. */
  now?: () => number;
}

/** The options with the defaults that several parts share. */
export type Setup = RegistryOptions & { now(): number; tokenStatuses: TokenStatuses };
