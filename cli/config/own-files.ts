import { dirname } from "node:path";
import { deviceSettings } from "../../gen/settings/settings.ts";
import type { CommandContext } from "../command-context.ts";
import { defaultConfigPath } from "./config-path.ts";

/**
 * The environment of a device, in which the files that say what programs may do here are denied to tools: the configuration
 * file, the folder where one would be read from, whether it exists yet or not, and the owner's manifest.
 */
export function withOwnFilesDenied({ env, configFile }: CommandContext): CommandContext["env"] {
  const { name, list } = deviceSettings.denied;
  const standard = defaultConfigPath(env);
  const own = [
    standard === undefined ? undefined : dirname(standard),
    configFile?.path,
    env[deviceSettings.manifest.name],
  ];
  const denied = [env[name], ...own].filter((path) => path !== undefined && path !== "");
  return { ...env, [name]: [...new Set(denied)].join(list) };
}
