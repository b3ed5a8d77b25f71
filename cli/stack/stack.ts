import { join } from "node:path";
import type { Registry as MetricsRegistry } from "prom-client";
import type { Mode } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import type { Manifest } from "../../gen/ts/reeve/device/v1/manifest_pb.ts";
import { authenticateByCertificate, firstThatKnows } from "../../lib/auth/authenticate.ts";
import type { Authenticate } from "../../lib/auth/principal.ts";
import { createTokenFile, type TokenFile } from "../../lib/auth/token-file.ts";
import { tokenStatuses } from "../../lib/auth/token-status.ts";
import { DEFAULT_TRUST_DOMAIN } from "../../lib/identity/spiffe.ts";
import type { TlsSource } from "../../lib/identity/tls-source.ts";
import type { Logger } from "../../lib/log/log.ts";
import { openBus } from "../../lib/run/open-bus.ts";
import type { Service } from "../../lib/run/run-service.ts";
import { createMetrics } from "../../lib/server/metrics.ts";
import { createServer, type Server } from "../../lib/server/server.ts";
import { type FolderLock, lockFolder } from "../../lib/store/folder-lock.ts";
import { shareScratchBuffer } from "../../lib/wire/scratch-writer.ts";
import type { DurableConfig } from "../../services/agent/durable-runs.ts";
import { createAgentService } from "../../services/agent/service.ts";
import type { DeviceAgentConfig } from "../../services/device-agent/config.ts";
import type { ToolProvider } from "../../services/device-agent/providers/provider.ts";
import { createDeviceAgent } from "../../services/device-agent/service.ts";
import { createPolicyService, type PolicyService } from "../../services/policy/service.ts";
import { approvalPage } from "../../services/registry/config.ts";
import { createRegistry, type Registry } from "../../services/registry/service.ts";
import { type OneDatabase, openOneDatabase } from "./one-database.ts";
import { type RestateServer, startRestateServer } from "./restate-server.ts";
import { openRegistryCertificate } from "./service-authority.ts";
import { openSocketFolder } from "./socket-folder.ts";

/** How a control plane on one machine is set up. */
export interface StackOptions {
  /** Where everything lives: tokens, keys, databases. Made when missing, mode 0700. */
  dataDir: string;
  /** Ports on loopback; 0 takes any. */
  ports: { registry: number; policy: number; device: number };
  /** The device's name. */
  deviceName: string;
  mode: Mode;
  readRoots: readonly string[];
  writeRoots: readonly string[];
  toolsAllowed?: readonly string[];
  /** The page where a person decides about an approval. Default: there is none. */
  approvalUrl?: string;
  policyFile?: string;
  /** What else is configured of the device. Default nothing. */
  device?: Partial<Omit<DeviceAgentConfig, "stateDir">>;
  /** Providers of tools for the device, besides the built-in ones. The device disposes of them. Default none. */
  providers?: readonly ToolProvider[];
  /** The agent service. Default: it does not run. */
  agent?: StackAgent;
  /** How long arguments and outputs of ended calls are kept, in milliseconds. Default 30 days. */
  callRetentionMs?: number;
  natsUrl?: string;
  /** Where devices of other machines dial in, with TLS, and the address that join tokens carry. Default: nowhere. */
  devices?: { host: string; port: number; publicUrl?: string };
  /** The environment that programs on the device get their few variables from. */
  env: Record<string, string | undefined>;
  logger: Logger;
}

/** Where the worker of durable runs listens: on loopback, at the same port at each start. */
export interface StackDurable {
  workerPort: number;
}

/** How the agent service of a stack is set up. */
export interface StackAgent {
  /** Its port on loopback; 0 takes any. */
  port: number;
  /** The folder of agents' files. */
  agentsDir: string;
  /** The model of runs that name none. */
  model?: string;
  /** How long texts of ended runs are kept, in milliseconds. Default 30 days. */
  retentionMs?: number;
  /** What runs call with. Asked for when the first one does. */
  tokens(): Promise<{ agent: string; trigger: string }>;
  /** Starts a Restate server, for runs that outlive this process. Default: there are none. */
  durable?: StackDurable;
}

/** All services in one process. */
export interface Stack {
  registryUrl: string;
  policyUrl: string;
  /** Undefined where the agent service does not run. */
  agentUrl: string | undefined;
  deviceUrl: string;
  /** How far its device can keep programs apart, and why that is not further: empty where nothing is missing. */
  sandbox: { isolation: string; shortfall: string };
  /** What its device offers, as it says itself: within the owner's manifest, where there is one. */
  offered: Manifest;
  /** Where devices of other machines dial in; undefined where they do not. */
  attachUrl: string | undefined;
  /** The same services on sockets that only programs of this user can open. */
  sockets: { registry: string; policy: string; agent?: string };
  tokens: TokenFile;
  /** The log's verifier key, in the form of C2SP signed notes. */
  checkpointKey: string;
  /** Stops what runs, waits at most 6 seconds for callers that are still connected, and closes everything. Safe to repeat. */
  close(): Promise<void>;
}

/**
 * Starts policy, a device agent, the registry and, where it is set up, the agent service in this process, joined by the same messages that they
 * exchange over a network, and each listening on a loopback port of its own. Rejects with FolderInUse, before anything is
 * read or changed, where another process has the folder.
 */
export async function startStack(options: StackOptions): Promise<Stack> {
  shareScratchBuffer();
  const { dataDir } = options;
  const lock = lockFolder(dataDir, { program: "reeve up", setting: "REEVE_DATA_DIR" });
  try {
    return await startIn(lock, options);
  } catch (error: unknown) {
    lock.release();
    throw error;
  }
}

/** Starts the stack in a folder that is this process's, and gives the folder up when the stack has closed. */
async function startIn(lock: FolderLock, options: StackOptions): Promise<Stack> {
  const { dataDir, logger, ports } = options;
  const tokens = createTokenFile(join(dataDir, "tokens.json"));
  const bus = await openBus({ natsUrl: options.natsUrl }, "reeve", logger);
  const retention = options.callRetentionMs === undefined ? {} : { callRetentionMs: options.callRetentionMs };
  const servers: Server[] = [];
  let policy: PolicyService | undefined;
  const callers: Service[] = [];
  const onClosed: (() => void | Promise<void>)[] = [];
  const metrics = {
    registry: createMetrics(),
    policy: createMetrics(),
    "device-agent": createMetrics(),
    agent: createMetrics(),
  };

  const serve = async (
    service: Service,
    port: number,
    name: keyof typeof metrics,
    place?: OwnSocket,
  ): Promise<Server> => {
    const server = await createServer({
      port,
      ...place,
      routes: service.routes,
      services: service.services,
      ready: service.ready,
      unavailable: () => service.unavailable?.() ?? [],
      authenticate: firstThatKnows(certificatesFor(service), tokens.authenticate),
      logger: logger.child({ part: name }),
      metrics: metrics[name],
      ...(service.fallback === undefined ? {} : { fallback: service.fallback }),
      ...(service.challenge === undefined ? {} : { challenge: service.challenge }),
    });
    servers.push(server);
    return server;
  };
  // The network reaches this port, and only devices may use it: no token opens it.
  const serveDevices = async (registry: Registry, tls: TlsSource, at: { host: string; port: number }) => {
    const server = await createServer({
      host: at.host,
      port: at.port,
      tls,
      routes: registry.deviceRoutes,
      onlyRoutes: true,
      ready: registry.ready,
      authenticate: certificatesFor(registry),
      logger: logger.child({ part: "devices" }),
      metrics: metrics.registry,
    });
    servers.push(server);
    return server;
  };

  const closeServices = async (): Promise<void> => {
    // The device ends its calls and reports to the registry, which reports to policy.
    await Promise.all(callers.map((service) => service.close()));
    await policy?.close();
  };
  const closeAll = async (): Promise<void> => {
    // Together: a server waits for streams that only its service ends.
    await Promise.all([...servers.map((server) => server.close()), closeServices()]);
    for (const close of onClosed) await close();
    await bus.close();
    lock.release();
  };
  let closing: Promise<void> | undefined;
  const close = () => (closing ??= closeAll());

  try {
    const database = await openOneDatabase(dataDir, logger.child({ part: "registry" }));
    onClosed.push(database.close);
    policy = await createPolicyService({
      config: {
        stateDir: join(dataDir, "policy"),
        ...retention,
        ...(options.policyFile === undefined ? {} : { policyFile: options.policyFile }),
      },
      database: database.policy,
      logger: logger.child({ part: "policy" }),
      metrics: metrics.policy.registry,
      bus,
    });
    const device = await createDeviceAgent({
      config: {
        ...options.device,
        stateDir: join(dataDir, "device"),
        name: options.deviceName,
        mode: options.mode,
        readRoots: options.readRoots,
        writeRoots: options.writeRoots,
        // Tokens, keys and databases of every part: no tool that takes a path touches them, whatever the roots are.
        denied: [dataDir, ...(options.device?.denied ?? [])],
      },
      grantKeys: policy.grantKeys,
      env: options.env,
      ...(options.providers && { providers: options.providers }),
      logger: logger.child({ part: "device-agent" }),
      metrics: metrics["device-agent"].registry,
    });
    callers.push(device);
    const certificate =
      options.devices && (await openRegistryCertificate(join(dataDir, "authority"), options.devices.host));
    if (certificate !== undefined) onClosed.push(certificate.close);
    const registry = await createRegistry({
      config: {
        stateDir: join(dataDir, "registry"),
        ...retention,
        localDevice: options.deviceName,
        ...(options.toolsAllowed === undefined ? {} : { toolsAllowed: options.toolsAllowed }),
        ...approvalPage(options.approvalUrl),
      },
      database: database.registry,
      policy: policy.link("registry"),
      tokenStatuses: tokenStatuses(tokens),
      ...(options.devices && { enrollment: { ...options.devices, tls: certificate } }),
      devices: new Map([[options.deviceName, device.link]]),
      bus,
      logger: logger.child({ part: "registry" }),
      metrics: metrics.registry.registry,
    });
    callers.push(registry);
    const policyServer = await serve(policy, ports.policy, "policy");
    const deviceServer = await serve(device, ports.device, "device-agent");
    const registryServer = await serve(registry, ports.registry, "registry");
    lock.listensAt(registryServer.url);
    const restate =
      options.agent?.durable &&
      (await startRestateServer({ folder: join(dataDir, "restate"), logger: logger.child({ part: "restate" }) }));
    if (restate !== undefined) onClosed.push(restate.close);
    const agent =
      options.agent &&
      (await openAgent(options, options.agent, database.agent, registryServer.url, metrics.agent.registry, restate));
    if (agent !== undefined) callers.unshift(agent);
    const agentServer = agent && (await serve(agent, options.agent?.port ?? 0, "agent"));
    const folder = await openSocketFolder(dataDir, options.env);
    onClosed.push(folder.close);
    const sockets = { registry: join(folder.path, "registry.sock"), policy: join(folder.path, "policy.sock") };
    await serve(policy, 0, "policy", { socketPath: sockets.policy });
    await serve(registry, 0, "registry", { socketPath: sockets.registry });
    const agentSocket = join(folder.path, "agent.sock");
    if (agent !== undefined) await serve(agent, 0, "agent", { socketPath: agentSocket });
    const { devices } = options;
    const attachServer = devices && registry.tls && (await serveDevices(registry, registry.tls, devices));
    return {
      registryUrl: registryServer.url,
      policyUrl: policyServer.url,
      agentUrl: agentServer?.url,
      deviceUrl: deviceServer.url,
      sandbox: device.sandbox,
      offered: device.manifest().manifest,
      attachUrl: attachServer?.url,
      sockets: { ...sockets, ...(agent && { agent: agentSocket }) },
      tokens,
      checkpointKey: policy.checkpointKey,
      close,
    };
  } catch (error: unknown) {
    await close();
    throw error;
  }
}

/** The agent service, whose runs call through the registry's port as any caller does. */
function openAgent(
  { dataDir, env, logger }: StackOptions,
  { agentsDir, model, retentionMs, tokens, durable }: StackAgent,
  database: OneDatabase["agent"],
  registryUrl: string,
  metrics: MetricsRegistry,
  restate: RestateServer | undefined,
) {
  return createAgentService({
    config: {
      stateDir: join(dataDir, "agent"),
      agentsDir,
      ...(model !== undefined && { model }),
      ...(retentionMs !== undefined && { retentionMs }),
      ...(restate && durable && { durable: durableOn(restate, durable) }),
    },
    database,
    registry: {
      url: () => registryUrl,
      token: async () => (await tokens()).agent,
      triggerToken: async () => (await tokens()).trigger,
    },
    env,
    logger: logger.child({ part: "agent" }),
    metrics,
  });
}

function durableOn({ ingress, admin, identityKey }: RestateServer, { workerPort }: StackDurable): DurableConfig {
  return { ingress, admin, identityKeys: [identityKey], workerHost: "127.0.0.1", workerPort };
}

/** A socket that only programs of this user can open. */
interface OwnSocket {
  socketPath: string;
}

/** Devices show certificates. No service does here: all of them are in this process. */
function certificatesFor(service: Service): Authenticate {
  const check = (peer: Parameters<NonNullable<Service["checkPeer"]>>[0]) => service.checkPeer?.(peer);
  return authenticateByCertificate({ trustDomain: DEFAULT_TRUST_DOMAIN, acceptServices: [], check });
}
