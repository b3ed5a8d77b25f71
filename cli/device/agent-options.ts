import { join, resolve } from "node:path";
import { type Command, Option } from "commander";
import type { CommandContext } from "../command-context.ts";
import { withConfigOption } from "../config/load-config.ts";
import { withOwnFilesDenied } from "../config/own-files.ts";
import { dataDir } from "../profile.ts";
import { gather } from "../repeatable.ts";

/** What the command line may say of this machine as a device. */
export interface AgentFlags {
  mode?: string;
  read: string[];
  write: string[];
  plugins?: string;
}

/** Adds --mode, --read, --write and --plugins. */
export function withAgentOptions(command: Command): Command {
  return withConfigOption(command)
    .addOption(new Option("--mode <mode>", "which tools this machine offers").choices(["user", "sudo", "all"]))
    .option(
      "--read <folder>",
      "a folder whose files may be read; can be repeated. Default: the folder this machine joins in, unless that is or holds the home folder",
      gather,
      [],
    )
    .option("--write <folder>", "a folder whose files may be read and written; can be repeated", gather, [])
    .option("--plugins <folder>", "a folder that holds plugins, each in a folder of its own (see `reeve plugin`)");
}

/** The environment of the agent: what the command line says, over the rest, with a folder of its own. */
export function agentEnvironment(
  { mode, read, write, plugins }: AgentFlags,
  context: CommandContext,
): CommandContext["env"] {
  const env = withOwnFilesDenied(context);
  return {
    ...env,
    REEVE_DEVICE_STATE_DIR: env.REEVE_DEVICE_STATE_DIR || join(dataDir(env), "device-agent"),
    ...(mode === undefined ? {} : { REEVE_DEVICE_MODE: mode }),
    ...(read.length === 0 ? {} : { REEVE_DEVICE_READ_ROOTS: read.join(":") }),
    ...(write.length === 0 ? {} : { REEVE_DEVICE_WRITE_ROOTS: write.join(":") }),
    ...(plugins === undefined ? {} : { REEVE_DEVICE_PLUGINS: resolve(plugins) }),
  };
}
