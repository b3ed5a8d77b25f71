import type { Command } from "commander";
import type { CommandContext } from "../command-context.ts";
import { STATE_DIR_HELP } from "../device-state-dir.ts";
import { withJson } from "../list-options.ts";
import type { AcceptFlags } from "../plugin/accept.ts";
import type { JsonFlag } from "../plugin/check.ts";
import type { ListPluginsFlags } from "../plugin/list.ts";

/** Registers `reeve plugin` with list, check, accept and new. */
export function registerPlugin(program: Command, context: CommandContext): void {
  const plugin = program
    .command("plugin")
    .description(
      "Plugins are folders with a plugin.json, which declares tools and the programs that do their work. A device offers what\n" +
        "its owner accepted, exactly as it was accepted. Nothing of a plugin runs here, and no service is asked.",
    );
  withJson(plugin.command("list"))
    .description("List the plugins of a folder, and whether they were accepted on this machine.")
    .option("--plugins <folder>", "the folder that holds them. Default: REEVE_DEVICE_PLUGINS")
    .option("--state-dir <folder>", STATE_DIR_HELP)
    .action(async (flags: ListPluginsFlags) => (await import("../plugin/list.ts")).list(flags, context));
  withJson(plugin.command("check").argument("<folder>", "the plugin's folder"))
    .description(
      "Check a plugin as a device checks it, and show its tools. Exit code 2 on problems, each with its line.",
    )
    .action(async (folder: string, flags: JsonFlag) =>
      (await import("../plugin/check.ts")).check(folder, flags, context),
    );
  withJson(plugin.command("accept").argument("<folder>", "the plugin's folder"))
    .description(
      "Let this machine's device offer a plugin's tools, as all its files are now. After any change it has to be accepted again.\n" +
        "A device that runs notices within seconds. Policy still decides about every call.",
    )
    .option("--state-dir <folder>", STATE_DIR_HELP)
    .action(async (folder: string, flags: AcceptFlags) =>
      (await import("../plugin/accept.ts")).accept(folder, flags, context),
    );
  withJson(plugin.command("new").argument("<folder>", "the plugin's folder, which is made; its last part is the name"))
    .description("Make a plugin with one tool, a Python script, to begin with.")
    .action(async (folder: string, flags: JsonFlag) =>
      (await import("../plugin/new.ts")).makeNew(folder, flags, context),
    );
}
