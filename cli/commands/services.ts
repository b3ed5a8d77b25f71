import { type Command, Option } from "commander";
import { closeInheritedDescriptors } from "../../lib/run/inherited-descriptors.ts";
import { runGuarded } from "../../lib/run/run-guarded.ts";
import type { CommandContext } from "../command-context.ts";
import { readJoinToken } from "../device/join-token.ts";
import { type AgentFlags, agentEnvironment, pendingText } from "../device/run-agent.ts";
import { explainStart } from "../errors/port-in-use.ts";
import { UsageError } from "../errors/usage-error.ts";
import { visibleLine } from "../print/escape.ts";
import { gather } from "../repeatable.ts";

/** Registers the commands that run one service in a process of its own, set up by the environment. */
export function registerServices(program: Command, context: CommandContext): void {
  program
    .command("registry")
    .description("Run the registry in a process of its own, as the environment says (reeve doctor --config lists it).")
    .action(async () => {
      const { runRegistry } = await import("../../services/registry/main.ts");
      const start = () =>
        runRegistry(context.env).catch((error: unknown) =>
          explainStart(error, "REEVE_REGISTRY_PORT or REEVE_PROBE_PORT"),
        );
      await runGuarded({ name: "registry", start });
    });
  program
    .command("device-agent")
    .description(
      "Run the device agent in a process of its own. A machine becomes a device with --join, once; from then on\n" +
        "`reeve device-agent` starts with what it was told then. Otherwise as the environment says.",
    )
    .option(
      "--join <file>",
      "become a device, with the token of `reeve device join-token` that is in this file. - asks for it, or reads it from\n" +
        "standard input. Or REEVE_JOIN_TOKEN_FILE. Never the token itself: every user can read command lines",
    )
    .addOption(new Option("--mode <mode>", "which tools this machine offers").choices(["user", "sudo", "all"]))
    .option(
      "--read <folder>",
      "a folder whose files may be read; can be repeated. Default: the folder this joins in, unless that is or holds the home folder",
      gather,
      [],
    )
    .option("--write <folder>", "a folder whose files may be read and written; can be repeated", gather, [])
    .action((flags: AgentFlags) => runAgent(flags, context));
}

async function runAgent(flags: AgentFlags, context: CommandContext): Promise<void> {
  closeInheritedDescriptors(context.env);
  const token = flags.join === undefined ? undefined : await readJoinToken(flags.join, context);
  const { runDeviceAgent, runUntilEnd } = await import("../../services/device-agent/main.ts");
  const start = (): ReturnType<typeof runDeviceAgent> => {
    const leaving = new AbortController();
    const stop = context.onInterrupt(() =>
      leaving.abort(new UsageError("joining was given up; the token can be used again")),
    );
    return runDeviceAgent(agentEnvironment(flags, context.env), {
      ...(token === undefined ? {} : { token }),
      onPending: (enrollment) => context.stderr.write(pendingText(enrollment)),
      onRetry: (error) => context.stderr.write(`reeve: ${visibleLine(error.rawMessage)}; trying again\n`),
      signal: leaving.signal,
    })
      .catch((error: unknown) => explainStart(error, "REEVE_DEVICE_PORT or REEVE_PROBE_PORT"))
      .finally(stop);
  };
  await runGuarded({ name: "device-agent", start, until: runUntilEnd });
}

/** Runs policy in a process of its own: `reeve policy` without a subcommand. */
export async function runPolicyService(context: CommandContext): Promise<void> {
  const { runPolicy } = await import("../../services/policy/main.ts");
  const start = () =>
    runPolicy(context.env).catch((error: unknown) => explainStart(error, "REEVE_POLICY_PORT or REEVE_PROBE_PORT"));
  await runGuarded({ name: "policy", start });
}
