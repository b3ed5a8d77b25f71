import { agentSettings, configSettings } from "../../gen/settings/settings.ts";
import { type ConfigSpec, required } from "../../lib/config/config.ts";
import { connectionKeys } from "../../lib/run/connection-keys.ts";
import { natsKeys } from "../../lib/run/nats-keys.ts";
import { oidcKeys } from "../../lib/run/oidc-keys.ts";
import { probeKeys } from "../../lib/run/probe-keys.ts";
import { tlsKeys } from "../../lib/run/tls-keys.ts";
import type { DurableConfig } from "./durable-runs.ts";
import { providerKeyFiles, providerKeys } from "./providers/provider-keys.ts";

/** How the agent service is set up. */
export interface AgentServiceConfig {
  /** Its own folder: database and sealing key. Made when missing, mode 0700. */
  stateDir: string;
  /** A PostgreSQL database, which replicas may share. Default: a SQLite file in the folder. */
  databaseUrl?: string;
  /** The file with the key that seals texts in the database; replicas need the same. Default: one in the folder. */
  sealingKeyFile?: string;
  /** The folder of agents' files. */
  agentsDir: string;
  /** The model of runs that name none. Default: that of the first provider whose key is set. */
  model?: string;
  /** How long the texts of ended runs are kept, in milliseconds. Default 30 days. */
  retentionMs?: number;
  /** Where runs are carried on that outlive this process. Default: there are none. */
  durable?: DurableConfig;
}

/** How long the texts of ended runs are kept where the configuration says nothing, in milliseconds. */
export const DEFAULT_RETENTION_MS = agentSettings.runRetention.default;

/** The agent service's own settings in the environment, for `reeve serve agent`. */
export const agentServiceEnvironment = {
  ...agentSettings,
  sealingKeyFile: configSettings.sealingKeyFile,
  tokensFile: required(configSettings.tokensFile),
  registryUrl: { ...required(configSettings.registryUrl), default: "http://127.0.0.1:7400" },
  agentToken: configSettings.agentToken,
  caFile: configSettings.caFile,
  ...natsKeys,
  ...tlsKeys,
  ...oidcKeys,
  ...probeKeys,
  ...connectionKeys,
  logLevel: configSettings.logLevel,
} as const satisfies ConfigSpec;

/** Those and the settings of the models' providers: all that `reeve serve agent` reads. */
export const agentProcessEnvironment: ConfigSpec = {
  ...agentServiceEnvironment,
  ...providerKeys(),
  ...providerKeyFiles(),
};
