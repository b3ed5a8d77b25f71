import { configSettings, policySettings } from "../../gen/settings/settings.ts";
import { type ConfigSpec, required } from "../../lib/config/config.ts";
import { connectionKeys } from "../../lib/run/connection-keys.ts";
import { natsKeys } from "../../lib/run/nats-keys.ts";
import { oidcKeys } from "../../lib/run/oidc-keys.ts";
import { probeKeys } from "../../lib/run/probe-keys.ts";
import { tlsKeys } from "../../lib/run/tls-keys.ts";
import type { HeldLimits } from "./approvals/held-quota.ts";

/** Policy's settings. */
export interface PolicyConfig {
  /** Policy's own folder: database and keys. Made with mode 0700 where it is missing. */
  stateDir: string;
  /** A PostgreSQL database, which replicas may share. Default: a SQLite file in the folder. A secret where it has a password. */
  databaseUrl?: string;
  /** The file with the key that seals private keys in the database; replicas need the same. Default: one in the folder. */
  sealingKeyFile?: string;
  /** How long the arguments and summaries of decided approvals are kept, in milliseconds. Default 30 days. */
  callRetentionMs?: number;
  /** The policy file. Default: the one that is shipped. */
  policyFile?: string;
  /** How much of one agent's may wait for a person. Default DEFAULT_HELD_LIMITS. */
  quotas?: Partial<HeldLimits>;
  /** Who issues grants, as written into each. Default "reeve-policy". */
  issuer?: string;
  /** The audit log's name. Default "reeve/" and the checkpoint key's id. Must stay the same for as long as there is the log. */
  origin?: string;
  /** From an append to the checkpoint that covers it, in milliseconds. Default 200. */
  checkpointDelayMs?: number;
  /** How often the policy file and the keys are looked at, in milliseconds; 0 for never. Default 1000. */
  reloadMs?: number;
}

/** Who issues grants where the configuration says nothing. */
export const DEFAULT_ISSUER = "reeve-policy";

/** From an append to its checkpoint where the configuration says nothing, in milliseconds. */
export const DEFAULT_CHECKPOINT_DELAY_MS = 200;

/** How often the policy file and the keys are looked at where the configuration says nothing, in milliseconds. */
export const DEFAULT_RELOAD_MS = 1000;

/** Policy's settings in the environment, for `reeve serve policy`. */
export const policyEnvironment = {
  ...policySettings,
  sealingKeyFile: configSettings.sealingKeyFile,
  callRetention: configSettings.callRetention,
  tokensFile: required(configSettings.tokensFile),
  ...natsKeys,
  ...tlsKeys,
  ...oidcKeys,
  ...probeKeys,
  ...connectionKeys,
  logLevel: configSettings.logLevel,
} as const satisfies ConfigSpec;
