import { join, resolve } from "node:path";
import type { CommandContext } from "../command-context.ts";

type Env = CommandContext["env"];

/** The file of a command line's --config, else REEVE_CONFIG_FILE, else the one that `defaultConfigPath` names. */
export function namedConfigPath(flag: string | undefined, env: Env): string | undefined {
  const named = flag || env.REEVE_CONFIG_FILE;
  return named ? resolve(named) : undefined;
}

/**
 * Where the file is by default: $XDG_CONFIG_HOME/reeve/config.yaml, else ~/.config/reeve/config.yaml. Undefined where the
 * environment has neither.
 */
export function defaultConfigPath({ XDG_CONFIG_HOME: xdg, HOME: home }: Env): string | undefined {
  // The specification says to ignore a relative one.
  if (xdg?.startsWith("/")) return join(xdg, "reeve", "config.yaml");
  return home ? join(home, ".config", "reeve", "config.yaml") : undefined;
}
