import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type ConfigOf, readConfig } from "../../lib/config/config.ts";
import { runGuarded } from "../../lib/run/run-guarded.ts";
import { type RunningService, runService } from "../../lib/run/run-service.ts";
import { type AgentServiceConfig, agentServiceEnvironment } from "./config.ts";
import { durableOf } from "./durable-config.ts";
import { ownTokens } from "./own-tokens.ts";
import { withKeysFromFiles } from "./providers/provider-keys.ts";
import { createAgentService } from "./service.ts";

/** Runs the agent service in a process of its own, as the environment says. */
export async function runAgentService(env: Readonly<Record<string, string | undefined>>): Promise<RunningService> {
  const settings = readConfig(agentServiceEnvironment, env);
  const { registryUrl, caFile } = settings;
  return runService({
    ...settings,
    name: "agent",
    // No service calls it.
    acceptServices: [],
    create: ({ logger, metrics }) =>
      createAgentService({
        config: configOf(settings),
        registry: {
          url: () => registryUrl.href,
          ...ownTokens(settings, logger),
          ...(caFile !== undefined && { ca: readFileSync(caFile, "utf8") }),
        },
        env: withKeysFromFiles(env),
        logger,
        metrics: metrics.registry,
      }),
  });
}

function configOf(settings: ConfigOf<typeof agentServiceEnvironment>): AgentServiceConfig {
  const { stateDir, databaseUrl, sealingKeyFile, agentsDir, model, runRetention } = settings;
  return {
    stateDir,
    agentsDir: agentsDir ?? join(stateDir, "agents"),
    retentionMs: runRetention,
    ...(model !== undefined && { model }),
    ...(databaseUrl !== undefined && { databaseUrl }),
    ...(sealingKeyFile !== undefined && { sealingKeyFile }),
    ...durableOf(settings),
  };
}

if (import.meta.main) await runGuarded({ name: "agent", start: () => runAgentService(process.env) });
