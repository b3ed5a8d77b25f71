import { SandboxLevel } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import { type DeviceAgentConfig, workDirOf } from "./config.ts";
import type { Executor, ExecutorLevel } from "./executor/executor.ts";
import { createLocalExecutor } from "./executor/local.ts";
import { createSpawnerProcess } from "./executor/spawner-process.ts";
import { openBuiltInTools } from "./providers/builtin/provider.ts";
import { openGrpcTools } from "./providers/grpc/provider.ts";
import type { ToolProvider } from "./providers/provider.ts";
import { createRoots, type Roots } from "./roots/roots.ts";
import type { DeviceFacts } from "./toolset.ts";

/** The machine under the agent, as far as its owner opens it. */
export interface Machine extends Disposable {
  executor: Executor;
  roots: Roots;
  providers: readonly ToolProvider[];
  /** What the manifest says of it. */
  facts: DeviceFacts;
}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Opens the roots and the providers of tools. The agent's own folder lies outside every root, whatever the configuration
 * says. Throws where a root does not exist.
 *
 * @param more further providers, which the machine then owns.
 */
export async function openMachine(
  config: DeviceAgentConfig,
  stateDir: string,
  env: Environment,
  more: readonly ToolProvider[] = [],
): Promise<Machine> {
  using parts = new DisposableStack();
  // First of all, while this process is small: what it forks is as large as it is.
  const spawner = parts.use(createSpawnerProcess());
  const executor = createLocalExecutor({ env, writeRoots: config.writeRoots, spawner });
  const roots = parts.use(
    createRoots({
      read: [...config.readRoots],
      write: [...config.writeRoots],
      workDir: workDirOf(config),
      deny: [stateDir, ...(config.denied ?? [])],
    }),
  );
  const options = { git: { env: pick(env, ["SSH_AUTH_SOCK"]) }, docker: { env: pick(env, ["DOCKER_HOST"]) } };
  const providers = [
    parts.use(await openBuiltInTools(executor, options)),
    parts.use(await openGrpcTools(config.services ?? [])),
    ...more.map((provider) => parts.use(provider)),
  ];
  const owned = parts.move();
  return {
    executor,
    roots,
    providers,
    facts: {
      name: config.name,
      labels: config.labels ?? {},
      mode: config.mode,
      readRoots: roots.granted.filter(({ write }) => !write).map(({ path }) => path),
      writeRoots: roots.granted.filter(({ write }) => write).map(({ path }) => path),
      sandbox: LEVELS[executor.level],
      platform: `${process.platform}/${process.arch}`,
    },
    [Symbol.dispose]: () => owned.dispose(),
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
