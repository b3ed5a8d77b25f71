import { SandboxLevel } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import type { LocalServices } from "./announced/local-services.ts";
import { type DeviceAgentConfig, workDirOf } from "./config.ts";
import type { OfferedTools } from "./execute/prepare.ts";
import type { Executor, ExecutorLevel } from "./executor/executor.ts";
import { createLocalExecutor } from "./executor/local.ts";
import type { ManifestFacts } from "./manifest/manifest.ts";
import { offerTools } from "./manifest/offer.ts";
import { createRoots, type Roots } from "./roots/roots.ts";
import { createToolTable, probeTools } from "./tools/index.ts";

/** The machine under the agent, as far as its owner opens it. */
export interface Machine {
  executor: Executor;
  roots: Roots;
  offered: OfferedTools;
  /** What the manifest says of it. */
  facts: Omit<ManifestFacts, "key" | "agentVersion" | "issueMs">;
  /** Capabilities in the configuration that no tool has. */
  unknownCapabilities: readonly string[];
}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Opens the roots and finds out which tools the machine can run, with those of the services that it announces. The
 * agent's own folder lies outside every root, whatever the configuration says. Throws where a root does not exist.
 */
export async function openMachine(
  config: DeviceAgentConfig,
  stateDir: string,
  env: Environment,
  services: Pick<LocalServices, "announced" | "tools" | "unavailable">,
): Promise<Machine> {
  const executor = createLocalExecutor({ env, writeRoots: config.writeRoots });
  const builtIn = createToolTable({
    git: { env: pick(env, ["SSH_AUTH_SOCK"]) },
    docker: { env: pick(env, ["DOCKER_HOST"]) },
  });
  const probed = await probeTools(builtIn, executor);
  const known = new Map([...builtIn.values(), ...services.tools].map((tool) => [tool.name, tool]));
  const unavailable = [...probed.unavailable, ...services.unavailable];
  const offer = offerTools([...probed.available, ...services.tools], known.values(), config);
  const roots = createRoots({
    read: [...config.readRoots],
    write: [...config.writeRoots],
    workDir: workDirOf(config),
    deny: [stateDir, ...(config.denied ?? [])],
  });
  return {
    executor,
    roots,
    offered: { tools: offer.tools, known, unavailable: new Map(unavailable.map((one) => [one.tool, one])) },
    facts: {
      name: config.name,
      labels: config.labels ?? {},
      mode: config.mode,
      capabilities: offer.capabilities,
      readRoots: roots.granted.filter(({ write }) => !write).map(({ path }) => path),
      writeRoots: roots.granted.filter(({ write }) => write).map(({ path }) => path),
      sandbox: LEVELS[executor.level],
      platform: `${process.platform}/${process.arch}`,
      unavailable,
      announced: services.announced,
    },
    unknownCapabilities: offer.unknown,
  };
}

const LEVELS: Readonly<Record<ExecutorLevel, SandboxLevel>> = { none: SandboxLevel.NONE };

function pick(env: Environment, names: readonly string[]): Record<string, string> {
  const picked: Record<string, string> = {};
  for (const name of names) {
    const value = env[name];
    if (value !== undefined) picked[name] = value;
  }
  return picked;
}
