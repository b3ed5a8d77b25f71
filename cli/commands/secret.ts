import type { Command } from "commander";
import type { CommandContext } from "../command-context.ts";
import { STATE_DIR_HELP } from "../device-state-dir.ts";
import { withJson } from "../list-options.ts";
import { gather } from "../repeatable.ts";
import type { SecretFlags, SetFlags } from "../secret/secrets.ts";

/** Registers `reeve secret` with set, list and delete. */
export function registerSecret(program: Command, context: CommandContext): void {
  const secret = program
    .command("secret")
    .description(
      "Secrets that tools of this machine's device send to other machines. A call names one by a handle, where its tool takes\n" +
        "one; what it stands for never leaves the device but to the hosts that it was set for, and is masked in what comes back.",
    );
  secret
    .command("set")
    .argument("<name>", "letters, digits and _")
    .description("Keep a secret, in place of one that has the name. Asks for it, or reads it from standard input.")
    .requiredOption("--host <host>", "a host that it may be sent to; may be repeated", (one, more?: string[]) =>
      gather(one, more ?? []),
    )
    .option("--state-dir <folder>", STATE_DIR_HELP)
    .action(async (name: string, flags: SetFlags) => (await import("../secret/secrets.ts")).set(name, flags, context));
  withJson(secret.command("list"))
    .description("List the secrets and where each may be sent; not what they are.")
    .option("--state-dir <folder>", STATE_DIR_HELP)
    .action(async (flags: SecretFlags) => (await import("../secret/secrets.ts")).list(flags, context));
  secret
    .command("delete")
    .argument("<name>", "the secret's name")
    .description("Forget a secret.")
    .option("--state-dir <folder>", STATE_DIR_HELP)
    .action(async (name: string, flags: SecretFlags) =>
      (await import("../secret/secrets.ts")).remove(name, flags, context),
    );
}
