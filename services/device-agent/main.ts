import { readFile } from "node:fs/promises";
import { type ConfigOf, readConfig } from "../../lib/config/config.ts";
import { type RunningService, runService, untilSignal } from "../../lib/run/run-service.ts";
import type { VerifyKey } from "../../lib/sign/keys.ts";
import { loadCatalogue } from "../../lib/toolschema/catalogue-file.ts";
import { type DeviceAgentConfig, deviceEnvironment } from "./config.ts";
import { createDeviceAgent } from "./service.ts";
import { MODES, parseGrantKeys, parseLabels, parseList } from "./settings.ts";

type Settings = ConfigOf<typeof deviceEnvironment>;

/** Runs a device agent in a process of its own, as the environment says. */
export async function runDeviceAgent(env: Readonly<Record<string, string | undefined>>): Promise<RunningService> {
  const settings = readConfig(deviceEnvironment, env);
  const config = configOf(settings);
  const grantKeys = await grantKeysOf(settings);
  const schemaDigests = new Map(loadCatalogue().tools.map((tool) => [tool.name, tool.schemaDigest]));
  return runService({
    ...settings,
    name: "device-agent",
    create: ({ logger }) => createDeviceAgent({ config, grantKeys, schemaDigests, logger, env }),
  });
}

function configOf(settings: Settings): DeviceAgentConfig {
  const { capabilities, workDir } = settings;
  return {
    stateDir: settings.stateDir,
    name: settings.name,
    mode: MODES[settings.mode],
    labels: parseLabels(settings.labels, deviceEnvironment.labels.name),
    readRoots: parseList(settings.readRoots, ":"),
    writeRoots: parseList(settings.writeRoots, ":"),
    denied: parseList(settings.denied, ":"),
    maxRunning: settings.maxRunning,
    retentionMs: settings.retention,
    ...(capabilities === undefined ? {} : { capabilities: parseList(capabilities, ",") }),
    ...(workDir === undefined ? {} : { workDir }),
  };
}

async function grantKeysOf({ grantKey, grantKeyFile }: Settings): Promise<VerifyKey[]> {
  if (grantKey !== undefined) return parseGrantKeys(grantKey, deviceEnvironment.grantKey.name);
  const variable = deviceEnvironment.grantKeyFile.name;
  if (grantKeyFile === undefined) throw new Error(`${deviceEnvironment.grantKey.name} or ${variable} must be set`);
  return parseGrantKeys(await readFile(grantKeyFile, "utf8"), variable);
}

if (import.meta.main) await untilSignal(await runDeviceAgent(process.env), process);
