import { createSecretKey } from "node:crypto";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LinkState, Mode } from "../gen/ts/reeve/device/v1/device_pb.ts";
import { Role } from "../gen/ts/reeve/options/v1/access_pb.ts";
import { authenticateByCertificate, firstThatKnows } from "../lib/auth/authenticate.ts";
import type { Authenticate, Principal } from "../lib/auth/principal.ts";
import { createInProcessBus } from "../lib/events/in-process-bus.ts";
import { sealerWith } from "../lib/identity/sealer.ts";
import { DEFAULT_TRUST_DOMAIN } from "../lib/identity/spiffe.ts";
import type { TlsSource } from "../lib/identity/tls-source.ts";
import { createLogger, type Logger } from "../lib/log/log.ts";
import { createServiceTransport, type ServiceTransport } from "../lib/rpc-client/transport.ts";
import { createServer, type Server } from "../lib/server/server.ts";
import { attachAgent } from "../services/device-agent/attach/attach.ts";
import { openAttachCount } from "../services/device-agent/count-file.ts";
import { createDeviceAgent } from "../services/device-agent/service.ts";
import { createPolicyService } from "../services/policy/service.ts";
import type { RegistryOptions } from "../services/registry/options.ts";
import { createRegistry, type Registry } from "../services/registry/service.ts";
import { type Caller, callerOf } from "./clients.ts";
import { type PostgresServer, startPostgresServer } from "./postgres-server.ts";
import { startTcpProxy, type TcpProxy } from "./tcp-proxy.ts";

/** One replica of the registry, listening. */
export interface Replica {
  registry: Registry;
  url: string;
  operator: Caller;
  agent: Caller;
  /** The way of the other replicas to this one. */
  peerProxy: TcpProxy;
  /** What it has logged, an object a line. */
  log: Record<string, unknown>[];
  close(): Promise<void>;
}

/** A device that holds a stream open. */
export interface AttachedDevice {
  id: string;
  name: string;
  /** Its only root to read and write in. */
  work: string;
  stateDir: string;
  close(): Promise<void>;
}

/** Replicas of the registry on one database, in this very process, with one policy. */
export interface ReplicaScene {
  postgres: PostgresServer;
  replica(options?: Partial<RegistryOptions>): Promise<Replica>;
  /** Attaches a device to whatever the URLs name, and resolves when it is linked. */
  device(name: string, urls: readonly string[], stateDir?: string): Promise<AttachedDevice>;
  databaseUrl: string;
  folder: string;
  close(): Promise<void>;
}

/** How long a replica that is gone keeps what it held, in milliseconds. */
export const LEASE_MS = 1000;

const PEOPLE = new Map<string, Principal>([
  ["Bearer operator", { id: "owner", kind: "operator", roles: [Role.OPERATOR], name: "owner" }],
  ["Bearer registry", { id: "registry", kind: "service", roles: [Role.SERVICE], name: "registry" }],
  ["Bearer agent", { id: "agent", kind: "agent", roles: [Role.AGENT], name: "agent" }],
]);

/** Callers by a word; devices by their id, which any caller may claim here: other tests are about certificates. */
const authenticate: Authenticate = (authorization = "") => {
  const id = /^Bearer (dev-[0-9a-f]{16})$/.exec(authorization)?.[1];
  if (id !== undefined) return { id, kind: "device", roles: [Role.DEVICE], name: id };
  return PEOPLE.get(authorization);
};

/** A connection between replicas: with the certificate over TLS, else with the token of a service. */
export function peerTransport(baseUrl: string, tls?: TlsSource): ServiceTransport {
  const serverName = { kind: "service", name: "registry", trustDomain: DEFAULT_TRUST_DOMAIN } as const;
  const by = tls === undefined ? { token: "registry" } : { tls, serverName };
  return createServiceTransport({ baseUrl, protocol: "grpc", pingIntervalMs: 300, pingTimeoutMs: 1000, ...by });
}

/** Starts PostgreSQL and policy. @param tls what replicas listen with, and show each other. Default: cleartext. */
export async function startReplicaScene(tls?: TlsSource): Promise<ReplicaScene> {
  await using parts = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "reeve-replicas-"));
  parts.defer(() => rm(folder, { recursive: true, force: true }));
  const postgres = parts.adopt(await startPostgresServer(), (one) => one.close());
  const databaseUrl = await postgres.newDatabase();
  const logger = createLogger({ service: "test", level: "silent" });
  const bus = createInProcessBus();
  const policy = parts.adopt(
    await createPolicyService({ config: { stateDir: join(folder, "policy") }, logger, bus }),
    (one) => one.close(),
  );
  const policyServer = parts.adopt(await serve(policy, logger), (one) => one.close(100));

  const replica = async (options: Partial<RegistryOptions> = {}): Promise<Replica> => {
    const log: Record<string, unknown>[] = [];
    const registry = await createRegistry({
      policy: policy.link("registry"),
      devices: new Map(),
      bus,
      peerTransport: (url) => peerTransport(url, tls),
      // Other tests are about whether devices are enrolled.
      ...(tls && { enrollment: { tls }, admission: {} }),
      sealer: sealerWith(createSecretKey(Buffer.alloc(32, 7))),
      logger: createLogger({
        service: "registry",
        level: "info",
        destination: { write: (line: string) => void log.push(JSON.parse(line)) },
      }),
      ...options,
      config: { stateDir: folder, databaseUrl, leaseMs: LEASE_MS, heartbeatMs: 300, ...options.config },
    });
    const server = await serve(registry, logger, options.enrollment?.tls ?? tls);
    const peerProxy = await startTcpProxy({ port: server.port });
    registry.onListening(`${tls === undefined ? "http" : "https"}://127.0.0.1:${peerProxy.port}`);
    let closing: Promise<unknown> | undefined;
    const close = async () => {
      closing ??= Promise.all([server.close(1000), registry.close()]).then(() => peerProxy.close());
      await closing;
    };
    started.defer(close);
    const urls = { registry: { url: server.url }, policy: { url: policyServer.url } };
    return {
      registry,
      url: server.url,
      operator: callerOf(urls, "operator"),
      agent: callerOf(urls, "agent"),
      peerProxy,
      log,
      close,
    };
  };
  const device = async (name: string, urls: readonly string[], state?: string): Promise<AttachedDevice> => {
    const [work, stateDir] = [join(folder, `work-${name}`), state ?? join(folder, `device-${name}`)];
    await mkdir(work, { recursive: true });
    const agent = await createDeviceAgent({
      config: { stateDir, name, mode: Mode.ALL, labels: {}, readRoots: [], writeRoots: [work], denied: [] },
      grantKeys: policy.grantKeys,
      env: process.env,
      logger,
    });
    const attachment = attachAgent({
      agent,
      count: await openAttachCount(stateDir),
      urls,
      transportTo: (baseUrl) => createServiceTransport({ baseUrl, token: agent.deviceId, protocol: "grpc" }),
      heartbeatMs: 300,
      logger,
    });
    started.defer(attachment.close);
    return { id: agent.deviceId, name, work, stateDir, close: attachment.close };
  };
  const started = parts.move();
  return { postgres, replica, device, databaseUrl, folder, close: () => started.disposeAsync() };
}

function serve(
  service: Pick<Registry, "routes" | "services" | "ready">,
  logger: Logger,
  tls?: TlsSource,
): Promise<Server> {
  const { routes, services, ready } = service;
  const certificates = authenticateByCertificate({ trustDomain: DEFAULT_TRUST_DOMAIN, acceptServices: ["registry"] });
  const known = firstThatKnows(certificates, authenticate);
  return createServer({ routes, services, ready, authenticate: known, logger, ...(tls && { tls }) });
}

/** Resolves when a replica shows a device as linked to some replica. */
export async function online(replica: Replica, device: string, holder?: Replica): Promise<void> {
  const wanted = holder?.registry.replicaId;
  for (let tries = 0; tries < 500; tries++) {
    const { device: seen } = await replica.operator.registry.getDevice({ device }).catch(() => ({ device: undefined }));
    if (seen?.link === LinkState.ONLINE && (wanted === undefined || seen.replicaId === wanted)) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`${device} did not come`);
}
