import type { Command } from "commander";
import { closeInheritedDescriptors } from "../../lib/run/inherited-descriptors.ts";
import { runGuarded } from "../../lib/run/run-guarded.ts";
import type { CommandContext } from "../command-context.ts";
import { withConfigOption } from "../config/load-config.ts";
import { type AgentFlags, agentEnvironment, withAgentOptions } from "../device/agent-options.ts";
import { explainStart } from "../errors/port-in-use.ts";
import { registerAll } from "./up.ts";

const SETTINGS =
  "Its settings are in the environment and the configuration file: `reeve config show --docs` lists them.";

/** Registers `reeve serve`: all services in one process, or one in a process of its own. */
export function registerServe(program: Command, context: CommandContext): void {
  const serve = program.command("serve").description("Run services: all in one process, or one by itself.");
  registerAll(serve, "all", context);
  withConfigOption(serve.command("registry"))
    .description(`Run the registry in a process of its own. ${SETTINGS}`)
    .action(async () => {
      const { runRegistry } = await import("../../services/registry/main.ts");
      const start = () => explained(runRegistry(context.env), "REEVE_REGISTRY_PORT or REEVE_PROBE_PORT");
      await runGuarded({ name: "registry", start });
    });
  withConfigOption(serve.command("policy"))
    .description(`Run policy in a process of its own. ${SETTINGS}`)
    .action(async () => {
      const { runPolicy } = await import("../../services/policy/main.ts");
      const start = () => explained(runPolicy(context.env), "REEVE_POLICY_PORT or REEVE_PROBE_PORT");
      await runGuarded({ name: "policy", start });
    });
  withConfigOption(serve.command("agent"))
    .description(`Run the agent service in a process of its own: runs of models that work with tools. ${SETTINGS}`)
    .action(async () => {
      const { runAgentService } = await import("../../services/agent/main.ts");
      const start = () => explained(runAgentService(context.env), "REEVE_AGENT_PORT or REEVE_PROBE_PORT");
      await runGuarded({ name: "agent", start });
    });
  withAgentOptions(serve.command("device"))
    .description(
      `Run the device agent of this machine, which has joined with \`reeve device join\`, joins with REEVE_JOIN_TOKEN_FILE, or is dialed. ${SETTINGS}`,
    )
    .action(async (flags: AgentFlags) => {
      closeInheritedDescriptors(context.env);
      const { runDeviceAgent, runUntilEnd } = await import("../../services/device-agent/main.ts");
      const env = agentEnvironment(flags, context);
      const start = () => explained(runDeviceAgent(env), "REEVE_DEVICE_PORT or REEVE_PROBE_PORT");
      await runGuarded({ name: "device-agent", start, until: runUntilEnd });
    });
}

/** A start whose failure names the setting to change. */
function explained<T>(start: Promise<T>, settings: string): Promise<T> {
  return start.catch((error: unknown) => explainStart(error, settings));
}
