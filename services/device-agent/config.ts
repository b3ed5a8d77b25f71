import type { Mode } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import type { ConfigSpec } from "../../lib/config/config.ts";
import { connectionKeys } from "../../lib/run/connection-keys.ts";
import { logLevelKey } from "../../lib/run/log-level.ts";
import { probeKeys } from "../../lib/run/probe-keys.ts";
import { tlsKeys } from "../../lib/run/tls-keys.ts";
import type { LocalService } from "./providers/grpc/service-list.ts";

/** How the owner sets a device agent up. */
export interface DeviceAgentConfig {
  /** The agent's own folder: key, manifest, ledger. Made with mode 0700 where it is missing. No tool that takes a path touches it; programs can. */
  stateDir: string;
  /** The name people call the device by. */
  name: string;
  /** Which tools it offers. */
  mode: Mode;
  /** Labels to choose devices by. Default none. */
  labels?: Readonly<Record<string, string>>;
  /** The capabilities that are granted. Default: all that the mode gives. */
  capabilities?: readonly string[];
  /** Folders whose files may be read. Absolute. With no root of either kind, the file tools refuse every path. */
  readRoots: readonly string[];
  /** Folders whose files may be read and written. Absolute. */
  writeRoots: readonly string[];
  /** More folders that no tool that takes a path touches, inside roots too; programs can. Absolute. Default none. */
  denied?: readonly string[];
  /** Where programs run for which no folder is given. Default: the first write root, else the first read root, else "/". */
  workDir?: string;
  /** Services of the machine whose annotated RPCs are offered as tools. Default none. */
  services?: readonly LocalService[];
  /** The folder that holds plugins, each in a folder of its own. Absolute. Default none. */
  plugins?: string;
  /** How many calls run at a time; more wait in order. Default 64. */
  maxRunning?: number;
  /** How many calls of operators run besides, when those places are taken. Default 8. */
  operatorPlaces?: number;
  /** How long the end of a call is kept, in milliseconds. Default 30 days, at least 1 hour. */
  retentionMs?: number;
  /** How often a link is checked, in milliseconds. Default 1000. */
  heartbeatMs?: number;
}

/** The port where the configuration says nothing and the device is dialed. */
export const DEFAULT_PORT = 7402;

/** Calls at a time where the configuration says nothing. */
export const DEFAULT_MAX_RUNNING = 64;

/** Places for operators' calls where the configuration says nothing. */
export const DEFAULT_OPERATOR_PLACES = 8;

const HOUR_MS = 60 * 60_000;

/** How long ends are kept where the configuration says nothing. */
export const DEFAULT_RETENTION_MS = 30 * 24 * HOUR_MS;

/**
 * The shortest retention. Far longer than a grant can live, so that a used grant id is known for as long as the grant
 * could be shown again.
 */
export const MIN_RETENTION_MS = HOUR_MS;

/** Where programs run for which no folder is given. Undefined where there is no root at all. */
export function workDirOf(config: DeviceAgentConfig): string | undefined {
  return config.workDir ?? config.writeRoots[0] ?? config.readRoots[0];
}

const stateDirKey = {
  name: "REEVE_DEVICE_STATE_DIR",
  type: "path",
  doc: "Folder of the agent's key, manifest and ledger.",
} as const;

const joinTokenFileKey = {
  name: "REEVE_JOIN_TOKEN_FILE",
  type: "path",
  optional: true,
  doc: "File with a join token, for a device that has not joined yet.",
} as const;

/** Where plugins are, for the agent and for the commands that look at them. */
export const pluginsKey = {
  name: "REEVE_DEVICE_PLUGINS",
  type: "path",
  optional: true,
  doc: "Folder of plugins: each folder in it with a plugin.json is one, and its tools are offered once `reeve plugin accept` was run for it. Unset: no plugins.",
} as const;

/** What is read before the rest, which a device that has joined knows from its folder. */
export const joinEnvironment = { stateDir: stateDirKey, joinTokenFile: joinTokenFileKey } as const satisfies ConfigSpec;

/** The device agent's settings in the environment, for `reeve serve device`. */
export const deviceEnvironment = {
  host: { name: "REEVE_DEVICE_HOST", type: "string", default: "127.0.0.1", doc: "Address to listen on." },
  port: {
    name: "REEVE_DEVICE_PORT",
    type: "int",
    min: 0,
    max: 65535,
    optional: true,
    doc: "Port; 0 takes any. Unset: 7402, or none where the device dials a registry.",
  },
  ...joinEnvironment,
  tokensFile: {
    name: "REEVE_TOKENS_FILE",
    type: "path",
    optional: true,
    doc: "File with the hashes of the tokens that may call. Needed where the device listens.",
  },
  grantKey: {
    name: "REEVE_GRANT_KEY",
    type: "string",
    optional: true,
    doc: "Public keys that sign grants: base64 of the 32 raw bytes of Ed25519, comma-separated while they are being changed.",
  },
  grantKeyFile: {
    name: "REEVE_GRANT_KEY_FILE",
    type: "path",
    optional: true,
    doc: "File with such keys, one a line. One of the two must be set.",
  },
  name: { name: "REEVE_DEVICE_NAME", type: "string", default: "this", doc: "The name people call the device by." },
  mode: {
    name: "REEVE_DEVICE_MODE",
    type: "enum",
    values: ["user", "sudo", "all"],
    default: "user",
    doc: "Which tools the device offers.",
  },
  labels: {
    name: "REEVE_DEVICE_LABELS",
    type: "string",
    default: "",
    doc: "Labels to choose devices by, such as role=web,zone=home.",
  },
  capabilities: {
    name: "REEVE_DEVICE_CAPABILITIES",
    type: "string",
    optional: true,
    doc: "Capabilities that are granted, comma-separated. Unset: all that the mode gives.",
  },
  readRoots: {
    name: "REEVE_DEVICE_READ_ROOTS",
    type: "string",
    default: "",
    doc: "Folders whose files may be read, absolute, colon-separated. With no root of either kind, file tools refuse every path.",
  },
  writeRoots: {
    name: "REEVE_DEVICE_WRITE_ROOTS",
    type: "string",
    default: "",
    doc: "Folders whose files may be read and written, absolute, colon-separated.",
  },
  denied: {
    name: "REEVE_DEVICE_DENIED",
    type: "string",
    default: "",
    doc: "More folders that no tool that takes a path touches, absolute, colon-separated; programs that tools start can. The state folder always is one.",
  },
  workDir: {
    name: "REEVE_DEVICE_WORK_DIR",
    type: "path",
    optional: true,
    doc: "Where programs run for which no folder is given. Unset: the first write root, else the first read root, else /.",
  },
  services: {
    name: "REEVE_DEVICE_SERVICES",
    type: "string",
    default: "",
    doc: "gRPC services whose annotated RPCs are offered as tools: printer=http://127.0.0.1:50051, comma-separated. Beyond loopback only https.",
  },
  serviceDescriptors: {
    name: "REEVE_DEVICE_SERVICES_DESCRIPTORS",
    type: "string",
    default: "",
    doc: "Files with the descriptor sets of such services, printer=/path/set.binpb, comma-separated. Others are asked by server reflection at start.",
  },
  plugins: pluginsKey,
  maxRunning: {
    name: "REEVE_DEVICE_MAX_RUNNING",
    type: "int",
    min: 1,
    max: 4096,
    default: DEFAULT_MAX_RUNNING,
    doc: "How many calls run at a time; more wait in order.",
  },
  operatorPlaces: {
    name: "REEVE_DEVICE_OPERATOR_PLACES",
    type: "int",
    min: 0,
    max: 4096,
    default: DEFAULT_OPERATOR_PLACES,
    doc: "How many calls of operators run besides, however many calls of agents do. A grant states whose call it is.",
  },
  retention: {
    name: "REEVE_DEVICE_RETENTION",
    type: "duration",
    min: MIN_RETENTION_MS,
    default: DEFAULT_RETENTION_MS,
    doc: "How long the end of a call is kept, at least 1h.",
  },
  registryUrl: {
    name: "REEVE_DEVICE_REGISTRY_URL",
    type: "string",
    default: "",
    doc: "Where the device dials in, such as https://reeve.example:7400; several, comma-separated, are tried in turn. Unset: the registry dials the device.",
  },
  heartbeat: {
    name: "REEVE_DEVICE_HEARTBEAT",
    type: "duration",
    min: 100,
    default: 1000,
    doc: "How often a link is checked by a ping; one that is silent for three times as long is given up.",
  },
  ...tlsKeys,
  ...probeKeys,
  ...connectionKeys,
  logLevel: logLevelKey,
} as const satisfies ConfigSpec;
