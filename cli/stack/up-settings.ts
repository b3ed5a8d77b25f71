import { resolve } from "node:path";
import {
  agentSettings,
  configSettings,
  natsSettings,
  policySettings,
  registrySettings,
} from "../../gen/settings/settings.ts";
import type { ConfigSpec } from "../../lib/config/config.ts";
import { ownDeviceEnvironment } from "../../services/device-agent/device-config.ts";
import type { CommandContext } from "../command-context.ts";

/** The options of `reeve up`: what is left out comes from the environment and the configuration file. */
export interface UpFlags {
  port?: string;
  mode?: string;
  read: string[];
  write: string[];
  tools?: string;
  plugins?: string;
  policyFile?: string;
  nats?: string;
  deviceAddress?: string;
  deviceUrl?: string;
  durable?: true;
  logLevel?: string;
}

/** The settings of `reeve up`, whose device is for a person who is at hand: it offers all, and logs little. */
export const upEnvironment = {
  ...ownDeviceEnvironment,
  mode: { ...ownDeviceEnvironment.mode, default: "all" },
  port: registrySettings.port,
  toolsAllowed: registrySettings.toolsAllowed,
  deviceAddress: registrySettings.deviceAddress,
  publicUrl: registrySettings.publicUrl,
  approvalUrl: registrySettings.approvalUrl,
  policyFile: policySettings.policyFile,
  natsUrl: natsSettings.natsUrl,
  callRetention: configSettings.callRetention,
  agentsDir: agentSettings.agentsDir,
  agentModel: agentSettings.model,
  runRetention: agentSettings.runRetention,
  workerPort: agentSettings.workerPort,
  logLevel: { ...configSettings.logLevel, default: "warn" },
} as const satisfies ConfigSpec;

type Env = CommandContext["env"];

/** The environment with what the flags say over it. */
export function withUpFlags(flags: UpFlags, env: Env): Env {
  const { mode, port, toolsAllowed, policyFile, natsUrl, deviceAddress, publicUrl, logLevel } = upEnvironment;
  const said: readonly [{ name: string }, string | undefined][] = [
    [mode, flags.mode],
    [port, flags.port],
    [upEnvironment.readRoots, flags.read.map((folder) => resolve(folder)).join(":")],
    [upEnvironment.writeRoots, flags.write.map((folder) => resolve(folder)).join(":")],
    [upEnvironment.plugins, flags.plugins],
    [toolsAllowed, flags.tools],
    [policyFile, flags.policyFile],
    [natsUrl, flags.nats],
    [deviceAddress, flags.deviceAddress],
    [publicUrl, flags.deviceUrl],
    [logLevel, flags.logLevel],
  ];
  const set = said.flatMap(([{ name }, text]) => (text ? [[name, text] as const] : []));
  return { ...env, ...Object.fromEntries(set) };
}
