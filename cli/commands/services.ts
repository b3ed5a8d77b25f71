import type { Command } from "commander";
import { untilSignal } from "../../lib/run/run-service.ts";
import type { World } from "../world.ts";

/** Registers the commands that run one service in a process of its own, set up by the environment. */
export function registerServices(program: Command, world: World): void {
  program
    .command("registry")
    .description("Run the registry in a process of its own, as the environment says (reeve doctor --config lists it).")
    .action(async () => {
      const { runRegistry } = await import("../../services/registry/main.ts");
      await untilSignal(await runRegistry(world.env), process);
    });
  program
    .command("device-agent")
    .description("Run the device agent in a process of its own, as the environment says.")
    .action(async () => {
      const { runDeviceAgent } = await import("../../services/device-agent/main.ts");
      await untilSignal(await runDeviceAgent(world.env), process);
    });
}

/** Runs policy in a process of its own: `reeve policy` without a subcommand. */
export async function runPolicyService(world: World): Promise<void> {
  const { runPolicy } = await import("../../services/policy/main.ts");
  await untilSignal(await runPolicy(world.env), process);
}
