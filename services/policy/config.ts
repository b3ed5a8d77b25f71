import type { ConfigSpec } from "../../lib/config/config.ts";
import { connectionKeys } from "../../lib/run/connection-keys.ts";
import { logLevelKey } from "../../lib/run/log-level.ts";
import { natsKeys } from "../../lib/run/nats-keys.ts";
import { oidcKeys } from "../../lib/run/oidc-keys.ts";
import { probeKeys } from "../../lib/run/probe-keys.ts";
import { tlsKeys } from "../../lib/run/tls-keys.ts";
import { DEFAULT_HELD_LIMITS, type HeldLimits } from "./approvals/held-quota.ts";
import { DEFAULT_RETENTION_MS } from "./approvals/retention.ts";

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
  host: { name: "REEVE_POLICY_HOST", type: "string", default: "127.0.0.1", doc: "Address to listen on." },
  port: { name: "REEVE_POLICY_PORT", type: "int", min: 0, max: 65535, default: 7401, doc: "Port; 0 takes any." },
  stateDir: { name: "REEVE_POLICY_STATE_DIR", type: "path", doc: "Folder of policy's database and keys." },
  databaseUrl: {
    name: "REEVE_POLICY_DATABASE_URL",
    type: "string",
    optional: true,
    secret: true,
    doc: "PostgreSQL database, postgres://user:password@host/database?schema=name, which replicas share. Default: SQLite.",
  },
  sealingKeyFile: {
    name: "REEVE_SEALING_KEY_FILE",
    type: "path",
    optional: true,
    doc: "File with the key (32 bytes, base64) that seals private keys and what held calls say in the database. Default: made in the state folder.",
  },
  callRetention: {
    name: "REEVE_RETENTION_CALLS",
    type: "duration",
    min: 60_000,
    default: DEFAULT_RETENTION_MS,
    doc: "How long arguments, purposes and summaries of held calls are kept once they were decided. Digests, decisions and the audit log stay.",
  },
  policyFile: {
    name: "REEVE_POLICY_FILE",
    type: "path",
    optional: true,
    doc: "The policy file. Default: the one that is shipped.",
  },
  agentHeldCalls: {
    name: "REEVE_AGENT_HELD_CALLS",
    type: "int",
    min: 0,
    max: 100_000,
    default: DEFAULT_HELD_LIMITS.heldCalls,
    doc: "Calls of one agent that may wait for a person; a fan-out is one. Operators: eight times as many.",
  },
  agentHeldBytes: {
    name: "REEVE_AGENT_HELD_BYTES",
    type: "int",
    min: 0,
    max: 1_073_741_824,
    default: DEFAULT_HELD_LIMITS.heldBytes,
    doc: "Bytes of the arguments of those calls. Operators: eight times as many.",
  },
  tokensFile: { name: "REEVE_TOKENS_FILE", type: "path", doc: "File with the hashes of the tokens that may call." },
  ...natsKeys,
  ...tlsKeys,
  ...oidcKeys,
  ...probeKeys,
  ...connectionKeys,
  logLevel: logLevelKey,
} as const satisfies ConfigSpec;
