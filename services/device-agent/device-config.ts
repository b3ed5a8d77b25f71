import type { ConfigOf, Environment } from "../../lib/config/config.ts";
import type { VerifyKey } from "../../lib/sign/keys.ts";
import { type DeviceAgentConfig, deviceEnvironment, MIB } from "./config.ts";
import { parseServices } from "./providers/grpc/service-list.ts";
import { MODES, parseKeys, parseLabels, parseList } from "./settings.ts";

/** The settings of the device itself, and not of how it is reached. */
export const ownDeviceEnvironment = {
  name: deviceEnvironment.name,
  mode: deviceEnvironment.mode,
  labels: deviceEnvironment.labels,
  capabilities: deviceEnvironment.capabilities,
  readRoots: deviceEnvironment.readRoots,
  writeRoots: deviceEnvironment.writeRoots,
  manifest: deviceEnvironment.manifest,
  manifestKeys: deviceEnvironment.manifestKeys,
  denied: deviceEnvironment.denied,
  workDir: deviceEnvironment.workDir,
  services: deviceEnvironment.services,
  serviceDescriptors: deviceEnvironment.serviceDescriptors,
  plugins: deviceEnvironment.plugins,
  hosts: deviceEnvironment.hosts,
  maxRunning: deviceEnvironment.maxRunning,
  operatorPlaces: deviceEnvironment.operatorPlaces,
  retention: deviceEnvironment.retention,
  outputMib: deviceEnvironment.outputMib,
  outputCallMib: deviceEnvironment.outputCallMib,
  outputAge: deviceEnvironment.outputAge,
  heartbeat: deviceEnvironment.heartbeat,
};

type DeviceSettings = ConfigOf<typeof ownDeviceEnvironment>;

/** What the settings say of a device. Throws an Error that names the variable of one that has not its form. */
export function deviceConfigOf(settings: DeviceSettings, env: Environment): Omit<DeviceAgentConfig, "stateDir"> {
  const { capabilities, workDir, plugins } = settings;
  return {
    name: settings.name,
    mode: MODES[settings.mode],
    labels: parseLabels(settings.labels, deviceEnvironment.labels.name),
    readRoots: parseList(settings.readRoots, ":"),
    writeRoots: parseList(settings.writeRoots, ":"),
    owner: ownerOf(settings, env),
    denied: parseList(settings.denied, ":"),
    hosts: parseList(settings.hosts, ","),
    maxRunning: settings.maxRunning,
    operatorPlaces: settings.operatorPlaces,
    retentionMs: settings.retention,
    output: {
      callBytes: settings.outputCallMib * MIB,
      totalBytes: settings.outputMib * MIB,
      ageMs: settings.outputAge,
    },
    heartbeatMs: settings.heartbeat,
    services: parseServices(
      { text: settings.services, variable: deviceEnvironment.services.name },
      { text: settings.serviceDescriptors, variable: deviceEnvironment.serviceDescriptors.name },
    ),
    ...(capabilities === "" ? {} : { capabilities: parseList(capabilities, ",") }),
    ...(workDir === undefined ? {} : { workDir }),
    ...(plugins === undefined ? {} : { plugins }),
  };
}

const BOUNDED = ["mode", "readRoots", "writeRoots", "hosts"] as const;

/** The owner's manifest, and what it fills in because no setting says it. */
function ownerOf(
  { manifest, manifestKeys }: OwnerKeySettings,
  env: Environment,
): NonNullable<DeviceAgentConfig["owner"]> {
  return {
    file: manifest,
    keys: ownerKeysOf({ manifestKeys }),
    unstated: new Set(BOUNDED.filter((name) => !env[deviceEnvironment[name].name])),
  };
}

type OwnerKeySettings = Pick<DeviceSettings, "manifest" | "manifestKeys">;

/** The owner's keys of the settings. Throws an Error that names the variable where one is no key. */
export function ownerKeysOf({ manifestKeys }: Pick<OwnerKeySettings, "manifestKeys">): VerifyKey[] {
  return manifestKeys === "" ? [] : parseKeys(manifestKeys, deviceEnvironment.manifestKeys.name);
}
