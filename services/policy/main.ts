import { type ConfigOf, readConfig } from "../../lib/config/config.ts";
import { runGuarded } from "../../lib/run/run-guarded.ts";
import { type RunningService, runService } from "../../lib/run/run-service.ts";
import { type PolicyConfig, policyEnvironment } from "./config.ts";
import { createPolicyService } from "./service.ts";

/** Runs policy in a process of its own, as the environment says. */
export async function runPolicy(env: Readonly<Record<string, string | undefined>>): Promise<RunningService> {
  const settings = readConfig(policyEnvironment, env);
  const config = configOf(settings);
  return runService({
    ...settings,
    name: "policy",
    acceptServices: ["registry"],
    create: ({ logger, bus, metrics }) => createPolicyService({ config, logger, bus, metrics: metrics.registry }),
  });
}

function configOf(settings: ConfigOf<typeof policyEnvironment>): PolicyConfig {
  const { stateDir, policyFile, databaseUrl, sealingKeyFile, callRetention } = settings;
  return {
    stateDir,
    callRetentionMs: callRetention,
    quotas: { heldCalls: settings.agentHeldCalls, heldBytes: settings.agentHeldBytes },
    ...(policyFile !== undefined && { policyFile }),
    ...(databaseUrl !== undefined && { databaseUrl }),
    ...(sealingKeyFile !== undefined && { sealingKeyFile }),
  };
}

if (import.meta.main) await runGuarded({ name: "policy", start: () => runPolicy(process.env) });
