import { open } from "node:fs/promises";
import { dirname } from "node:path";
import {
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
import type { CommandContext } from "../command-context.ts";
import { UsageError } from "../errors/usage-error.ts";

type Env = CommandContext["env"];

/** Every setting that has a place in the file, by its section's place in the file. */
export const fileKeys: readonly ConfigKey[] = [
  configSettings,
  deviceSettings,
  registrySettings,
  policySettings,
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
  const { text, mode, uid } = await readWithOwner(path).catch((cause: unknown) => {
    throw new UsageError(`the configuration file ${path} cannot be read`, [], { cause });
  });
  const own = process.getuid?.();
  if (own !== undefined && uid !== own && uid !== 0)
    throw new UsageError(`the configuration file ${path} belongs to another user`);
  if (own !== undefined && (mode & 0o022) !== 0)
    throw new UsageError(`the configuration file ${path} may be changed by others`, [`chmod go-w ${path}`]);
  return { path, ...parseConfigFile(text, { folder: dirname(path), home: env.HOME }, fileKeys) };
}

/** A file's text and whose it is, of the same open file. */
async function readWithOwner(path: string): Promise<{ text: string; mode: number; uid: number }> {
  await using file = await open(path, "r");
  const { mode, uid } = await file.stat();
  return { text: await file.readFile("utf8"), mode, uid };
}

/** The problems of a file, a line each: `config.yaml:3: …`. */
export function problemLines({ path, problems }: Pick<FoundConfig, "path" | "problems">): string[] {
  return problems.map(({ line, message }) => `${path}:${line}: ${message}`);
}
