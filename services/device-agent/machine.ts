import { type HostList, parseHosts } from "../../lib/hosts/host-list.ts";
import type { SignedManifest } from "../../lib/owner-manifest/envelope.ts";
import { type DeviceAgentConfig, workDirOf } from "./config.ts";
import type { Executor } from "./executor/executor.ts";
import { createLocalExecutor } from "./executor/local.ts";
import { levelOf } from "./executor/sandbox/levels.ts";
import { openSandbox } from "./executor/sandbox/open-sandbox.ts";
import { createSpawnerProcess } from "./executor/spawner-process.ts";
import { openBuiltInTools } from "./providers/builtin/provider.ts";
import { openGrpcTools } from "./providers/grpc/provider.ts";
import { openPluginTools } from "./providers/plugin/provider.ts";
import type { ToolProvider } from "./providers/provider.ts";
import { createRoots, type Roots } from "./roots/roots.ts";
import type { StateDir } from "./state-dir.ts";
import type { DeviceFacts } from "./toolset.ts";

/** The machine under the agent, as far as its owner opens it. */
export interface Machine extends Disposable {
  executor: Executor;
  roots: Roots;
  hosts: HostList;
  providers: readonly ToolProvider[];
  /** What the manifest says of it. */
  facts: DeviceFacts;
}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Opens the roots and the providers of tools. The agent's own folder lies outside every root, whatever the configuration
 * says. Throws where a root does not exist, and where the list of hosts has another entry.
 *
 * @param more further providers, which the machine then owns.
 * @param owner the owner's manifest, within which the configuration lies. Default: there is none.
 */
export async function openMachine(
  config: DeviceAgentConfig,
  state: Pick<StateDir, "path" | "acceptedFile" | "foundFile">,
  env: Environment,
  more: readonly ToolProvider[] = [],
  owner?: SignedManifest,
): Promise<Machine> {
  const hosts = parseHosts(config.hosts ?? []);
  using parts = new DisposableStack();
  // First of all, while this process is small: what it forks is as large as it is.
  const spawner = parts.use(createSpawnerProcess());
  const hidden = [state.path, ...(config.denied ?? [])];
  const roots = parts.use(
    createRoots({
      read: [...config.readRoots],
      write: [...config.writeRoots],
      workDir: workDirOf(config),
      deny: hidden,
    }),
  );
  const programs = { env, writeRoots: config.writeRoots, spawner };
  const granted = (write: boolean) => roots.granted.filter((root) => root.write === write).map(({ path }) => path);
  const [readRoots, writeRoots] = [granted(false), granted(true)];
  const bwrap = createLocalExecutor(programs).resolve("bwrap");
  const sandbox = parts.use(await openSandbox({ spawner, bwrap, readRoots, writeRoots, hidden }));
  const executor = createLocalExecutor({ ...programs, sandbox });
  const options = {
    hosts,
    git: { env: pick(env, ["SSH_AUTH_SOCK"]) },
    docker: { env: pick(env, ["DOCKER_HOST"]) },
    ssh: { env: pick(env, ["SSH_AUTH_SOCK"]) },
  };
  const taken = new Set((config.services ?? []).map(({ name }) => name));
  const { acceptedFile, foundFile } = state;
  const place = { acceptedFile, foundFile, writeRoots, hidden, taken, owner: owner?.manifest };
  const openPlugins = async (folder: string) =>
    parts.use(await openPluginTools({ folder, ...place }, { executor, env }));
  const providers = [
    parts.use(await openBuiltInTools(executor, options)),
    parts.use(await openGrpcTools(config.services ?? [])),
    ...(config.plugins === undefined ? [] : [await openPlugins(config.plugins)]),
    ...more.map((provider) => parts.use(provider)),
  ];
  const owned = parts.move();
  return {
    executor,
    roots,
    hosts,
    providers,
    facts: {
      name: config.name,
      labels: config.labels ?? {},
      mode: config.mode,
      readRoots,
      writeRoots,
      hosts: [...new Set(config.hosts ?? [])].sort(),
      sandbox: levelOf(executor.isolation),
      sandboxShortfall: executor.shortfall.slice(0, MAX_SHORTFALL),
      owner: owner && ownerState(owner),
      platform: `${process.platform}/${process.arch}`,
    },
    [Symbol.dispose]: () => owned.dispose(),
  };
}

/** The most characters of a reason that a control plane takes. */
const MAX_SHORTFALL = 1000;

function ownerState({ manifest, digest, keyId }: SignedManifest) {
  const { version, sandbox, expireTime } = manifest;
  return { version, digest, keyId, sandbox, ...(expireTime && { expireTime }) };
}

function pick(env: Environment, names: readonly string[]): Record<string, string> {
  const picked: Record<string, string> = {};
  for (const name of names) {
    const value = env[name];
    if (value !== undefined) picked[name] = value;
  }
  return picked;
}
