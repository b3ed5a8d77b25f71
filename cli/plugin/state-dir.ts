import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { ACCEPTED_FILE } from "../../lib/plugin/accepted.ts";
import { FOUND_FILE } from "../../lib/plugin/found-tools.ts";
import type { CommandContext } from "../command-context.ts";
import { UsageError } from "../errors/usage-error.ts";
import { dataDir } from "../profile.ts";

/** The option that names a device's state folder. */
export interface StateDirFlag {
  stateDir?: string;
}

/** The files of a device that are about its plugins. */
export interface PluginFiles {
  /** What was accepted on this machine. */
  accepted: string;
  /** What the plugins' MCP servers listed. */
  found: string;
}

/** Those in the state folder that is named, else in the one that there is. Throws a UsageError where there are two. */
export function pluginFiles(flags: StateDirFlag, context: CommandContext): PluginFiles {
  const folder = stateDir(flags, context);
  return { accepted: join(folder, ACCEPTED_FILE), found: join(folder, FOUND_FILE) };
}

function stateDir({ stateDir: flag }: StateDirFlag, { env }: CommandContext): string {
  const named = flag || env.REEVE_DEVICE_STATE_DIR;
  if (named) return resolve(named);
  const [ofUp, ofJoined] = [join(dataDir(env), "device"), join(dataDir(env), "device-agent")];
  if (existsSync(ofUp) && existsSync(ofJoined))
    throw new UsageError("this machine has two devices, so say which", [
      `--state-dir ${ofUp}`,
      `--state-dir ${ofJoined}`,
    ]);
  return existsSync(ofJoined) ? ofJoined : ofUp;
}
