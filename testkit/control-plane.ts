import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Role } from "../gen/ts/reeve/options/v1/access_pb.ts";
import { createTokenFile } from "../lib/auth/token-file.ts";
import { type DeviceOptions, type DeviceProcess, startDevices } from "./device-process.ts";
import { freePorts } from "./free-port.ts";
import type { NatsAccess } from "./nats-access.ts";
import type { PostgresServer } from "./postgres-server.ts";
import { type ServiceAuthority, tlsEnv } from "./service-certificates.ts";
import { type ServiceProcess, startServiceProcess } from "./service-process.ts";
import { startTcpBalancer } from "./tcp-balancer.ts";

/** Replicas of one service, at least one. */
export type Replicas = readonly [ServiceProcess, ...ServiceProcess[]];

/** Registries, policies and devices as processes of their own, on loopback. */
export interface ControlPlane {
  /** Where callers reach each service: its only replica, or a load balancer before them. */
  registry: { url: string };
  policy: { url: string };
  registries: Replicas;
  policies: Replicas;
  /** The ports for probes and metrics, in the order of the replicas; empty unless they were asked for. */
  probes: { registries: readonly number[]; policies: readonly number[] };
  devices: readonly DeviceProcess[];
  /** The first of each. */
  readonly processes: { registry: ServiceProcess; policy: ServiceProcess; device: ServiceProcess };
  /** A device by its name; the first without one. */
  device(name?: string): DeviceProcess;
  /** Bearer tokens, by the role of their holder. */
  tokens: { operator: string; agent: string; auditor: string; service: string };
  /** The authority of the services, PEM: what callers have to trust. Undefined without TLS. */
  ca: string | undefined;
  /** Everything on disk. `work` is where all devices read and write, unless each has a folder of its own. */
  folder: string;
  work: string;
  /** The path of policy's database, or its URL. */
  policyDatabase: string;
  /** Ends everything and removes the folder. */
  close(): Promise<void>;
}

/** What a control plane consists of. Default: one of each in cleartext, with SQLite, without NATS. */
export interface ControlPlaneOptions {
  /** Replicas. More than one of a service need `postgres`, and of the registry `nats` too. */
  registries?: number;
  policies?: number;
  postgres?: PostgresServer;
  nats?: NatsAccess;
  /** Signs the certificates of the services: with one they speak TLS. */
  authority?: Pick<ServiceAuthority, "certificate" | "issue">;
  /** Devices by name, the first for callers that name none. Default: one, "this", that the registry dials. */
  devices?: Readonly<Record<string, DeviceOptions>>;
  /** Whether each device has a folder of its own to read and write in. Default false. */
  ownFolders?: boolean;
  mode?: "user" | "sudo" | "all";
  policyFile?: string;
  /** Environment of all processes, of the registries, and of the devices. */
  env?: Readonly<Record<string, string>>;
  registryEnv?: Readonly<Record<string, string>>;
  deviceEnv?: Readonly<Record<string, string>>;
  /** Whether registries and policies have a port for probes and metrics. Default false. */
  probes?: boolean;
}

/** Starts one on free ports with fresh state. Resolves when all its devices are online. */
export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  await using parts = new AsyncDisposableStack();
  const folder = await realpath(await mkdtemp(join(tmpdir(), "reeve-test-")));
  parts.defer(() => rm(folder, { recursive: true, force: true }));
  const work = join(folder, "work");
  await mkdir(work);
  const tokensFile = join(folder, "tokens.json");
  const tokens = issueTokens(tokensFile);
  const { postgres, authority, nats } = options;
  const database = await postgres?.newDatabase();
  const env = {
    REEVE_TOKENS_FILE: tokensFile,
    REEVE_LOG_LEVEL: "info",
    ...(postgres && { REEVE_SEALING_KEY_FILE: await newSealingKey(folder) }),
    ...nats?.env,
    ...options.env,
  };

  const start = async (service: "registry" | "policy", count = 1, own: Record<string, string> = {}) => {
    const name = service.toUpperCase();
    const ports = await freePorts(count);
    const probes = options.probes ? await freePorts(count) : [];
    const certificate = await authority?.issue(service);
    const balancer = count === 1 ? undefined : await startTcpBalancer(ports);
    if (balancer) parts.defer(() => balancer.close());
    const url = `${certificate ? "https" : "http"}://127.0.0.1:${balancer?.port ?? ports[0]}`;
    const started = ports.map(async (port, at) =>
      parts.adopt(
        await startServiceProcess(service, port, {
          ...env,
          ...(certificate && tlsEnv(certificate)),
          ...(database !== undefined && { [`REEVE_${name}_DATABASE_URL`]: `${database}?schema=${service}` }),
          ...(probes[at] !== undefined && { REEVE_PROBE_PORT: String(probes[at]) }),
          ...(service === "registry" && balancer && { REEVE_REGISTRY_PUBLIC_URL: url }),
          [`REEVE_${name}_PORT`]: String(port),
          [`REEVE_${name}_STATE_DIR`]: join(folder, `${service}-${at}`),
          ...own,
        }),
        (one) => one.stop(),
      ),
    );
    return { url, probes, replicas: (await Promise.all(started)) as unknown as Replicas };
  };

  const policy = await start("policy", options.policies, {
    ...(options.policyFile !== undefined && { REEVE_POLICY_FILE: options.policyFile }),
  });
  const fleet = await startDevices(parts, {
    devices: options.devices ?? { this: {} },
    folder,
    work: options.ownFolders ? undefined : work,
    env: { ...env, REEVE_NATS_URL: "", REEVE_DEVICE_MODE: options.mode ?? "all", ...options.deviceEnv },
    grantKeyFile: join(folder, "policy-0", "grant.pub"),
  });
  const registry = await start("registry", options.registries, {
    REEVE_POLICY_URL: policy.replicas.map(({ url }) => url).join(","),
    REEVE_SERVICE_TOKEN: tokens.service,
    REEVE_DIAL_DEVICES: fleet.dialed,
    ...(fleet.first !== undefined && { REEVE_LOCAL_DEVICE: fleet.first, REEVE_DEFAULT_DEVICE: fleet.first }),
    ...options.registryEnv,
  });
  const devices = await fleet.attach({
    url: registry.url,
    replicas: registry.replicas,
    token: tokens.operator,
    ca: authority?.certificate,
  });
  const device = (name?: string): DeviceProcess => {
    const found = devices.find((each) => name === undefined || each.name === name);
    if (found === undefined) throw new Error(`no device ${name}`);
    return found;
  };
  const ready = parts.move();
  return {
    registry: { url: registry.url },
    policy: { url: policy.url },
    registries: registry.replicas,
    policies: policy.replicas,
    probes: { registries: registry.probes, policies: policy.probes },
    devices,
    device,
    get processes() {
      return { registry: registry.replicas[0], policy: policy.replicas[0], device: device().process };
    },
    tokens,
    ca: authority?.certificate,
    folder,
    work: options.ownFolders ? (devices[0]?.work ?? work) : work,
    policyDatabase: database === undefined ? join(folder, "policy-0", "policy.db") : `${database}?schema=policy`,
    close: () => ready.disposeAsync(),
  };
}

function issueTokens(file: string): ControlPlane["tokens"] {
  const issue = (role: Role, name: string) => createTokenFile(file).issueToken({ name, roles: [role] }).token;
  return {
    operator: issue(Role.OPERATOR, "owner"),
    agent: issue(Role.AGENT, "agent"),
    auditor: issue(Role.AUDITOR, "auditor"),
    service: issue(Role.SERVICE, "service"),
  };
}

/** Replicas that share a database have to share the key that seals what is in it. */
async function newSealingKey(folder: string): Promise<string> {
  const file = join(folder, "sealing.key");
  await writeFile(file, `${randomBytes(32).toString("base64")}\n`, { mode: 0o600 });
  return file;
}
