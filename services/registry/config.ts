import { configSettings, registrySettings } from "../../gen/settings/settings.ts";
import { ConfigError, type ConfigSpec, required } from "../../lib/config/config.ts";
import { connectionKeys } from "../../lib/run/connection-keys.ts";
import { natsKeys } from "../../lib/run/nats-keys.ts";
import { oidcKeys, type ProtectedResource } from "../../lib/run/oidc-keys.ts";
import { probeKeys } from "../../lib/run/probe-keys.ts";
import { tlsKeys } from "../../lib/run/tls-keys.ts";
import type { QuotaLimits } from "./calls/quotas.ts";
import { enrollmentKeys } from "./enrollment/config.ts";

/** A registry's configuration. */
export interface RegistryConfig {
  /** Where its database lives, unless it is PostgreSQL. Made when missing, mode 0700. */
  stateDir: string;
  /** The PostgreSQL database that all replicas share. Default: SQLite in the state folder, for one replica. */
  databaseUrl?: string;
  /** How long a replica that says nothing keeps what it holds, in milliseconds. Default 5000. */
  leaseMs?: number;
  /** Where the other replicas reach this one. Default: the address that it listens on. */
  advertiseUrl?: string;
  /** How long the bodies of ended calls are kept, in milliseconds. Default 30 days. */
  callRetentionMs?: number;
  /** How often links to devices that attach are checked by a ping, in milliseconds. Default 1000. */
  heartbeatMs?: number;
  /** Names of tools that callers may use; empty keeps everything the devices offer. */
  toolsAllowed?: readonly string[];
  /** The device that "this" means. */
  localDevice?: string;
  /** The device of calls that name none, where there are several. Default: such calls are refused. */
  defaultDevice?: string;
  /** What one agent may have open here. Default DEFAULT_QUOTAS. */
  quotas?: Partial<QuotaLimits>;
  /** The page where a person decides about an approval, with "{approval}" in place of its id. Default: there is none. */
  approvalUrl?: string;
  /** What OAuth clients of /mcp ask a provider for. Default: they are sent to none, and bring a token of their own. */
  protectedResource?: ProtectedResource;
  /** How long to wait for the devices at start, in milliseconds, before calls are taken. Default 3000. */
  startWaitMs?: number;
}

const { deviceAddress: _ofUp, ...own } = registrySettings;

/** The setting of the approval's page, checked: clients send people there. Throws ConfigError. */
export function approvalPage(setting: string | undefined): Pick<RegistryConfig, "approvalUrl"> {
  if (setting === undefined) return {};
  const { protocol = "" } = URL.parse(setting.replace("{approval}", "a")) ?? {};
  if (!/^https?:$/.test(protocol) || !setting.includes("{approval}"))
    throw new ConfigError([`${own.approvalUrl.name} is no address with {approval} in it: ${own.approvalUrl.doc}`]);
  return { approvalUrl: setting };
}

/** The registry's settings in the environment, for `reeve serve registry`. */
export const registryEnvironment = {
  ...own,
  tokensFile: required(configSettings.tokensFile),
  callRetention: configSettings.callRetention,
  policyUrl: { ...required(configSettings.policyUrl), default: "http://127.0.0.1:7401" },
  serviceToken: configSettings.serviceToken,
  ...enrollmentKeys,
  ...natsKeys,
  ...tlsKeys,
  ...oidcKeys,
  ...probeKeys,
  ...connectionKeys,
  logLevel: configSettings.logLevel,
} as const satisfies ConfigSpec;
