import type { ConfigSpec } from "../../lib/config/config.ts";
import { connectionKeys } from "../../lib/run/connection-keys.ts";
import { logLevelKey } from "../../lib/run/log-level.ts";
import { natsKeys } from "../../lib/run/nats-keys.ts";
import { oidcKeys } from "../../lib/run/oidc-keys.ts";
import { probeKeys } from "../../lib/run/probe-keys.ts";
import { tlsKeys } from "../../lib/run/tls-keys.ts";
import { DEFAULT_QUOTAS, type QuotaLimits } from "./calls/quotas.ts";
import { DEFAULT_CALL_RETENTION_MS } from "./calls/retention.ts";
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
  /** How long to wait for the devices at start, in milliseconds, before calls are taken. Default 3000. */
  startWaitMs?: number;
}

/** The registry's settings in the environment, for `reeve serve registry`. */
export const registryEnvironment = {
  host: { name: "REEVE_REGISTRY_HOST", type: "string", default: "127.0.0.1", doc: "Address to listen on." },
  port: { name: "REEVE_REGISTRY_PORT", type: "int", min: 0, max: 65535, default: 7400, doc: "Port; 0 takes any." },
  stateDir: { name: "REEVE_REGISTRY_STATE_DIR", type: "path", doc: "Folder of the registry's database." },
  tokensFile: { name: "REEVE_TOKENS_FILE", type: "path", doc: "File with the hashes of the tokens that may call." },
  databaseUrl: {
    name: "REEVE_REGISTRY_DATABASE_URL",
    type: "string",
    optional: true,
    secret: true,
    doc: "PostgreSQL database that all replicas share, such as postgres://user@host/db. Unset: SQLite in the state folder.",
  },
  replicaLease: {
    name: "REEVE_REPLICA_LEASE",
    type: "duration",
    min: 500,
    default: 5000,
    doc: "How long a replica that is gone keeps its calls and devices before another one claims them.",
  },
  advertiseUrl: {
    name: "REEVE_REGISTRY_ADVERTISE_URL",
    type: "string",
    optional: true,
    doc: "Where the other replicas reach this one, such as https://10.1.2.3:7400: an address of this replica alone, not of a load balancer. Unset: the address it listens on; for 0.0.0.0 or :: the machine's first one.",
  },
  callRetention: {
    name: "REEVE_RETENTION_CALLS",
    type: "duration",
    min: 60_000,
    default: DEFAULT_CALL_RETENTION_MS,
    doc: "How long arguments, outputs, purposes and error texts of ended calls are kept. Digests, decisions and the audit log stay.",
  },
  policyUrl: {
    name: "REEVE_POLICY_URL",
    type: "string",
    default: "http://127.0.0.1:7401",
    doc: "Where policy listens; several replicas of it, comma-separated.",
  },
  serviceToken: {
    name: "REEVE_SERVICE_TOKEN",
    type: "string",
    secret: true,
    optional: true,
    doc: "Token with the role service, for policy, the devices and other replicas. Not needed where they are reached by https.",
  },
  devices: {
    name: "REEVE_DIAL_DEVICES",
    type: "string",
    default: "",
    doc: "The devices to dial: name=url, comma-separated; REEVE_DIAL_<NAME>_URL overrides one. All others attach.",
  },
  localDevice: {
    name: "REEVE_LOCAL_DEVICE",
    type: "string",
    optional: true,
    doc: 'The device that the name "this" means.',
  },
  defaultDevice: {
    name: "REEVE_DEFAULT_DEVICE",
    type: "string",
    optional: true,
    doc: "The device of calls that name none, where there are several. Unset: such calls are refused.",
  },
  toolsAllowed: {
    name: "REEVE_TOOLS_ALLOWED",
    type: "string",
    default: "",
    doc: "Tools that callers may use, comma-separated. Empty: all that the devices offer.",
  },
  agentCalls: {
    name: "REEVE_AGENT_CALLS",
    type: "int",
    min: 1,
    max: 100_000,
    default: DEFAULT_QUOTAS.calls,
    doc: "Calls of one agent that may run or be decided on at once at this replica. Operators: eight times as many, as for all REEVE_AGENT_ limits.",
  },
  agentFanOutCalls: {
    name: "REEVE_AGENT_FAN_OUT_CALLS",
    type: "int",
    min: 1,
    max: 100_000,
    default: DEFAULT_QUOTAS.fanOutCalls,
    doc: "The same for calls of one agent's fan-outs.",
  },
  agentQueuedCalls: {
    name: "REEVE_AGENT_QUEUED_CALLS",
    type: "int",
    min: 0,
    max: 100_000,
    default: DEFAULT_QUOTAS.queuedCalls,
    doc: "Calls of one agent that may wait at this replica for a device that is offline.",
  },
  agentQueuedBytes: {
    name: "REEVE_AGENT_QUEUED_BYTES",
    type: "int",
    min: 0,
    max: 1_073_741_824,
    default: DEFAULT_QUOTAS.queuedBytes,
    doc: "Bytes of the arguments of those calls.",
  },
  ...enrollmentKeys,
  ...natsKeys,
  ...tlsKeys,
  ...oidcKeys,
  ...probeKeys,
  ...connectionKeys,
  logLevel: logLevelKey,
} as const satisfies ConfigSpec;
