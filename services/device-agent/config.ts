import { configSettings, deviceSettings } from "../../gen/settings/settings.ts";
import type { Mode } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import type { ConfigSpec } from "../../lib/config/config.ts";
import { connectionKeys } from "../../lib/run/connection-keys.ts";
import { probeKeys } from "../../lib/run/probe-keys.ts";
import { tlsKeys } from "../../lib/run/tls-keys.ts";
import type { Unstated } from "./manifest/bounds.ts";
import type { OwnerSettings } from "./manifest/owner.ts";
import type { OutputLimits } from "./output/output-folder.ts";
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
  /** The owner's manifest, and which settings were not stated, so that the manifest's count. Default none. */
  owner?: OwnerSettings & { unstated: Unstated };
  /** More folders that no tool that takes a path touches, inside roots too; programs can. Absolute. Default none. */
  denied?: readonly string[];
  /** Where programs run for which no folder is given. Default: the first write root, else the first read root, else "/". */
  workDir?: string;
  /** Services of the machine whose annotated RPCs are offered as tools. Default none. */
  services?: readonly LocalService[];
  /** The folder that holds plugins, each in a folder of its own. Absolute. Default none. */
  plugins?: string;
  /** Where tools may connect, see parseHosts. Default nowhere. */
  hosts?: readonly string[];
  /** How many calls run at a time; more wait in order. Default 64. */
  maxRunning?: number;
  /** How many calls of operators run besides, when those places are taken. Default 8. */
  operatorPlaces?: number;
  /** How long the end of a call is kept, in milliseconds. Default 30 days, at least 1 hour. */
  retentionMs?: number;
  /** How much is kept of what calls print. Default DEFAULT_OUTPUT_LIMITS. */
  output?: OutputLimits;
  /** How often a link is checked, in milliseconds. Default 1000. */
  heartbeatMs?: number;
}

/** The port where the configuration says nothing and the device is dialed. */
export const DEFAULT_PORT = 7402;

/** Calls at a time where the configuration says nothing. */
export const DEFAULT_MAX_RUNNING = deviceSettings.maxRunning.default;

/** Places for operators' calls where the configuration says nothing. */
export const DEFAULT_OPERATOR_PLACES = deviceSettings.operatorPlaces.default;

/** How long ends are kept where the configuration says nothing. */
export const DEFAULT_RETENTION_MS = deviceSettings.retention.default;

/**
 * The shortest retention. Far longer than a grant can live, so that a used grant id is known for as long as the grant
 * could be shown again.
 */
export const MIN_RETENTION_MS = deviceSettings.retention.min;

/** In bytes. */
export const MIB = 1024 * 1024;

/** What is kept of what calls print, where the configuration says nothing. */
export const DEFAULT_OUTPUT_LIMITS: OutputLimits = {
  callBytes: deviceSettings.outputCallMib.default * MIB,
  totalBytes: deviceSettings.outputMib.default * MIB,
  ageMs: deviceSettings.outputAge.default,
};

/** Where programs run for which no folder is given. Undefined where there is no root at all. */
export function workDirOf(config: DeviceAgentConfig): string | undefined {
  return config.workDir ?? config.writeRoots[0] ?? config.readRoots[0];
}

/** What is read before the rest, which a device that has joined knows from its folder. */
export const joinEnvironment = {
  stateDir: deviceSettings.stateDir,
  joinTokenFile: deviceSettings.joinTokenFile,
} as const satisfies ConfigSpec;

/** The device agent's settings in the environment, for `reeve serve device`. */
export const deviceEnvironment = {
  ...deviceSettings,
  tokensFile: configSettings.tokensFile,
  ...tlsKeys,
  ...probeKeys,
  ...connectionKeys,
  logLevel: configSettings.logLevel,
} as const satisfies ConfigSpec;
