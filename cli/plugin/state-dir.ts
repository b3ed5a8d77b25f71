import { join } from "node:path";
import { ACCEPTED_FILE } from "../../lib/plugin/accepted.ts";
import { FOUND_FILE } from "../../lib/plugin/found-tools.ts";
import type { CommandContext } from "../command-context.ts";
import { deviceStateDir, type StateDirFlag } from "../device-state-dir.ts";

/** The files of a device that are about its plugins. */
export interface PluginFiles {
  /** What was accepted on this machine. */
  accepted: string;
  /** What the plugins' MCP servers listed. */
  found: string;
}

/** Those in the state folder that is named, else in the one that there is. Throws a UsageError where there are two. */
export function pluginFiles(flags: StateDirFlag, context: CommandContext): PluginFiles {
  const folder = deviceStateDir(flags, context);
  return { accepted: join(folder, ACCEPTED_FILE), found: join(folder, FOUND_FILE) };
}
