import { type Command, Option } from "commander";
import { closeInheritedDescriptors } from "../../lib/run/inherited-descriptors.ts";
import { runGuarded } from "../../lib/run/run-guarded.ts";
import type { CommandContext } from "../command-context.ts";
import { withConfigOption } from "../config/load-config.ts";
import { gather } from "../repeatable.ts";
import type { UpFlags } from "../stack/up-settings.ts";

/** Registers `reeve up`, the short way of `reeve serve all`. */
export function registerUp(program: Command, context: CommandContext): void {
  registerAll(program, "up", context);
}

/** Registers the command that runs everything on this machine in one process, under a name. */
export function registerAll(parent: Command, name: string, context: CommandContext): void {
  withConfigOption(parent.command(name))
    .description(
      "Run everything on this machine in one process: registry, policy, and a device agent that makes this machine a device. The first start makes the tokens and prints them once. What is left out here comes from the environment and the configuration file: see `reeve config show`.",
    )
    .option(
      "--port <n>",
      "port of the registry; policy and the device agent take the two after it. 0 takes any three. Default: 7400",
    )
    .addOption(
      new Option("--mode <mode>", "which tools this machine offers. Default: all").choices(["user", "sudo", "all"]),
    )
    .option(
      "--read <folder>",
      "a folder whose files may be read; can be repeated. Default: the folder this is started in, unless that is or holds the home folder",
      gather,
      [],
    )
    .option(
      "--write <folder>",
      "a folder whose files may be read and written; can be repeated. Default: none",
      gather,
      [],
    )
    .option("--tools <names>", "tools that callers may use, comma-separated. Default: all that the mode gives")
    .option(
      "--plugins <folder>",
      "a folder that holds plugins, each in a folder of its own (see `reeve plugin`). Default: REEVE_DEVICE_PLUGINS, else none",
    )
    .option("--policy-file <file>", "the policy. Default: the one that comes with Reeve")
    .option("--nats <url>", "NATS server for events. Default: events stay in the process")
    .option(
      "--device-address <host:port>",
      "let other machines become devices: they dial in there, with TLS (see `reeve device join-token`). Default: they cannot",
    )
    .option("--device-url <url>", "where other machines reach that address, if it is not the one that is listened on")
    .option(
      "--durable",
      "carry runs on that outlive every process: starts a Restate server (@restatedev/restate-server of npm), whose license is the Business Source License 1.1, not an open-source one; it allows running it for yourself. Default: runs end with this process",
    )
    .option("--log-level <level>", "what to log to standard error, as JSON lines. Default: warn")
    .action(async (flags: UpFlags) => {
      closeInheritedDescriptors(context.env);
      const { up } = await import("./run-up.ts");
      await runGuarded({
        name: "reeve",
        start: () => up(flags, context),
        say: (text) => context.stderr.write(text),
      });
    });
}
