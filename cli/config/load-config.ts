import { existsSync } from "node:fs";
import type { Command } from "commander";
import type { CommandContext } from "../command-context.ts";
import { defaultConfigPath, namedConfigPath } from "./config-path.ts";

/** Adds --config to a command. What it means is done before any command runs: see `withConfig`. */
export function withConfigOption(command: Command): Command {
  return command.option(
    "--config <file>",
    "the configuration file (REEVE_CONFIG_FILE). Default: reeve/config.yaml in $XDG_CONFIG_HOME, else in ~/.config, where it exists",
  );
}

/** The commands that take --config; `call` and others leave it to a tool that may have such a flag. */
const TAKERS: ReadonlySet<string> = new Set(["up", "serve", "device", "config", "doctor", "manifest"]);

/** The commands that read the file themselves, so that a damaged one does not keep them from it. */
const OWN_READERS: ReadonlySet<string> = new Set(["config", "help"]);

/**
 * The context with what the configuration file says, under the environment: everything that reads a setting reads it from
 * there. Throws a UsageError, with a line for each problem, where the file is not valid.
 */
export async function withConfig(argv: readonly string[], context: CommandContext): Promise<CommandContext> {
  const [command] = argv;
  const isHelp = argv.some((word) => word === "--help" || word === "-h");
  if (command === undefined || command.startsWith("-") || OWN_READERS.has(command) || isHelp) return context;
  const path = configPath(argv, context);
  if (path === undefined) return context;
  const [{ problemLines, readConfigFile }, { withFileValues }, { UsageError }] = await Promise.all([
    import("./config-file.ts"),
    import("../../lib/config/config-file.ts"),
    import("../errors/usage-error.ts"),
  ]);
  const file = await readConfigFile(path, context.env);
  if (file.problems.length > 0)
    throw new UsageError(["the configuration file is not valid:", ...problemLines(file)].join("\n"), [
      "`reeve config schema` prints its shape for an editor, and nothing is read from it until it is valid",
    ]);
  return { ...context, env: withFileValues(context.env, file.values), configFile: file };
}

/** The file that a command line means; undefined where there is none. */
export function configPath(argv: readonly string[], { env }: CommandContext): string | undefined {
  const named = namedConfigPath(configFlag(argv), env);
  if (named !== undefined) return named;
  const path = defaultConfigPath(env);
  return path !== undefined && existsSync(path) ? path : undefined;
}

function configFlag(argv: readonly string[]): string | undefined {
  const [command = ""] = argv;
  if (!TAKERS.has(command)) return undefined;
  const end = argv.indexOf("--");
  const words = end < 0 ? argv : argv.slice(0, end);
  const at = words.findLastIndex((word) => word === "--config" || word.startsWith("--config="));
  const word = words[at];
  return word === "--config" ? words[at + 1] : word?.slice("--config=".length);
}
