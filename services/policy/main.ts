import { type ConfigOf, readConfig } from "../../lib/config/config.ts";
import { type RunningService, runService, untilSignal } from "../../lib/run/run-service.ts";
import { type PolicyConfig, policyEnvironment } from "./config.ts";
import { createPolicyService } from "./service.ts";

/** Runs policy in a process of its own, as the environment says. */
export async function runPolicy(env: Readonly<Record<string, string | undefined>>): Promise<RunningService> {
  const settings = readConfig(policyEnvironment, env);
  const config = configOf(settings);
  return runService({ ...settings, name: "policy", create: (parts) => createPolicyService({ config, ...parts }) });
}

function configOf({ stateDir, policyFile }: ConfigOf<typeof policyEnvironment>): PolicyConfig {
  return { stateDir, ...(policyFile !== undefined && { policyFile }) };
}

if (import.meta.main) await untilSignal(await runPolicy(process.env), process);
