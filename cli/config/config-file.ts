import { dirname } from "node:path";
import {
  agentSettings,
  configSettings,
  deviceSettings,
  natsSettings,
  oidcSettings,
  policySettings,
  probeSettings,
  registrySettings,
  tlsSettings,
} from "../../gen/settings/settings.ts";
import { type ConfigFile, parseConfigFile } from "../../lib/config/config-file.ts";
import type { ConfigKey } from "../../lib/config/config-key.ts";
import { OwnedFileError, readOwnedFile } from "../../lib/files/owned-file.ts";
import type { CommandContext } from "../command-context.ts";
import { UsageError } from "../errors/usage-error.ts";

type Env = CommandContext["env"];

/** Every setting that has a place in the file, by its section's place in the file. */
export const fileKeys: readonly ConfigKey[] = [
  configSettings,
  deviceSettings,
  registrySettings,
  policySettings,
  agentSettings,
  tlsSettings,
  natsSettings,
  oidcSettings,
  probeSettings,
].flatMap((section) => Object.values<ConfigKey>(section));

/** A configuration file, where it is. */
export interface FoundConfig extends ConfigFile {
  path: string;
}

/**
 * Reads a configuration file. Throws a UsageError where it cannot be read, or where another user could have written it: it says
 * what programs may do here.
 */
export async function readConfigFile(path: string, env: Env): Promise<FoundConfig> {
  const text = await readOwnedFile(path, "configuration file").catch((error: unknown): never => {
    if (!(error instanceof OwnedFileError)) throw error;
    throw new UsageError(error.message, error.fix, { cause: error.cause });
  });
  return { path, ...parseConfigFile(text, { folder: dirname(path), home: env.HOME }, fileKeys) };
}

/** The problems of a file, a line each: `config.yaml:3: …`. */
export function problemLines({ path, problems }: Pick<FoundConfig, "path" | "problems">): string[] {
  return problems.map(({ line, message }) => `${path}:${line}: ${message}`);
}
