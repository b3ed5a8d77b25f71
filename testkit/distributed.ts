import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { type RegistryClient, registryClient } from "../client/registry.ts";
import { LinkState } from "../gen/ts/reeve/device/v1/device_pb.ts";
import { EnrollmentService } from "../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import { Role } from "../gen/ts/reeve/options/v1/access_pb.ts";
import { createTokenFile } from "../lib/auth/token-file.ts";
import type { TlsMaterial } from "../lib/identity/tls-source.ts";
import { createServiceTransport } from "../lib/serve/client.ts";
import { freePorts } from "./free-port.ts";
import { type NatsServer, startNatsServer } from "./nats-server.ts";
import { type PostgresServer, startPostgresServer } from "./postgres-server.ts";
import { type CertificateFiles, makeServiceAuthority, tlsEnv } from "./service-certificates.ts";
import { type ServiceProcess, startServiceProcess } from "./service-process.ts";
import { startTcpBalancer } from "./tcp-balancer.ts";
import { startTcpProxy, type TcpProxy } from "./tcp-proxy.ts";

/** A device that has enrolled and dials the registries through a proxy of its own. */
export interface DistributedDevice {
  name: string;
  process: ServiceProcess;
  /** The way to the registries: it can be cut, or made to swallow everything. */
  way: TcpProxy;
  /** The device's only root to read and write in. */
  work: string;
  stateDir: string;
}

/** A control plane as a platform runs it: replicas behind load balancers, a shared database, a bus, all with mTLS. */
export interface Distributed {
  registries: ServiceProcess[];
  policies: ServiceProcess[];
  devices: DistributedDevice[];
  postgres: PostgresServer;
  nats: NatsServer;
  /** The addresses of the load balancers. */
  registry: { url: string };
  policy: { url: string };
  /** Bearer tokens, by what their holder may be. */
  tokens: { operator: string; agent: string; auditor: string };
  /** The authority of the services, PEM: what callers have to trust. */
  ca: string;
  caFile: string;
  /** A certificate that the authority signed for some service. */
  certificate(name: string): Promise<CertificateFiles>;
  /** A device's certificate that was good until an hour ago. */
  expiredDevice(): Promise<TlsMaterial>;
  /** The bus's login for the control plane. */
  natsLogin: { user: string; pass: string };
  /** The policy's database. */
  policyDatabase: string;
  folder: string;
  /** Ends everything and removes the folder. */
  close(): Promise<void>;
}

/** What can be chosen. */
export interface DistributedOptions {
  registries?: number;
  policies?: number;
  /** Names of the devices; the first is the one for callers that name none. Default this, second, third. */
  devices?: readonly string[];
  policyFile?: string;
  env?: Record<string, string>;
  deviceEnv?: Record<string, string>;
}

/** Starts it: PostgreSQL, NATS with TLS and a login, two of each service, and three devices that enroll and attach. */
export async function startDistributed(options: DistributedOptions = {}): Promise<Distributed> {
  await using parts = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "reeve-many-"));
  parts.defer(() => rm(folder, { recursive: true, force: true }));
  const authority = await makeServiceAuthority(join(folder, "certs"));
  const natsLogin = { user: "reeve", pass: randomBytes(12).toString("hex") };
  const natsFiles = await authority.issue("nats");
  const nats = parts.adopt(await startNatsServer({ args: await natsArgs(folder, natsLogin, natsFiles) }), (one) =>
    one.close(),
  );
  const postgres = parts.adopt(await startPostgresServer(), (one) => one.close());
  const database = await postgres.newDatabase();
  const tokensFile = join(folder, "tokens.json");
  const issue = (role: Role, name: string) => createTokenFile(tokensFile).issueToken({ name, roles: [role] }).token;
  const tokens = {
    operator: issue(Role.OPERATOR, "owner"),
    agent: issue(Role.AGENT, "agent"),
    auditor: issue(Role.AUDITOR, "auditor"),
  };
  const sealingKey = join(folder, "sealing.key");
  await writeFile(sealingKey, `${randomBytes(32).toString("base64")}\n`, { mode: 0o600 });
  const natsPassword = join(folder, "nats-password");
  await writeFile(natsPassword, natsLogin.pass, { mode: 0o600 });
  const shared = {
    REEVE_LOG_LEVEL: "info",
    REEVE_TOKENS_FILE: tokensFile,
    REEVE_SEALING_KEY_FILE: sealingKey,
    REEVE_NATS_URL: `tls://127.0.0.1:${nats.port}`,
    REEVE_NATS_USER: natsLogin.user,
    REEVE_NATS_PASSWORD_FILE: natsPassword,
    REEVE_NATS_CA_FILE: authority.caFile,
    ...options.env,
  };
  const started = async (command: string, port: number, env: Record<string, string>) =>
    parts.adopt(await startServiceProcess(command, port, { ...shared, ...env }), (one) => one.stop());

  const policyFiles = await authority.issue("policy");
  const policyPorts = await freePorts(options.policies ?? 2);
  const policies = await Promise.all(
    policyPorts.map((port, i) =>
      started("policy", port, {
        ...tlsEnv(policyFiles),
        REEVE_POLICY_PORT: String(port),
        REEVE_POLICY_STATE_DIR: join(folder, `policy-${i}`),
        REEVE_POLICY_DATABASE_URL: `${database}?schema=policy`,
        ...(options.policyFile === undefined ? {} : { REEVE_POLICY_FILE: options.policyFile }),
      }),
    ),
  );
  const registryFiles = await authority.issue("registry");
  const registryPorts = await freePorts(options.registries ?? 2);
  const balancer = parts.adopt(await startTcpBalancer(registryPorts), (one) => one.close());
  const policyBalancer = parts.adopt(await startTcpBalancer(policyPorts), (one) => one.close());
  const names = options.devices ?? ["this", "second", "third"];
  const registries = await Promise.all(
    registryPorts.map((port, i) =>
      started("registry", port, {
        ...tlsEnv(registryFiles),
        REEVE_REGISTRY_PORT: String(port),
        REEVE_REGISTRY_STATE_DIR: join(folder, `registry-${i}`),
        REEVE_REGISTRY_DATABASE_URL: `${database}?schema=registry`,
        REEVE_REGISTRY_PUBLIC_URL: `https://127.0.0.1:${balancer.port}`,
        REEVE_POLICY_URL: policies.map(({ url }) => url).join(","),
        REEVE_DEVICES: "",
        REEVE_LOCAL_DEVICE: names[0] ?? "this",
        REEVE_DEFAULT_DEVICE: names[0] ?? "this",
      }),
    ),
  );
  const registry = { url: `https://127.0.0.1:${balancer.port}` };
  const operator = createServiceTransport({ baseUrl: registry.url, token: tokens.operator, ca: authority.certificate });
  parts.defer(() => operator.close());
  const enrollments = createClient(EnrollmentService, operator);
  const devices = await Promise.all(
    names.map(async (name): Promise<DistributedDevice> => {
      const way = parts.adopt(await startTcpProxy({ port: balancer.port }), (one) => one.close());
      const [work, stateDir] = [join(folder, `work-${name}`), join(folder, `device-${name}`)];
      await mkdir(work);
      const { token } = await enrollments.createJoinToken({ name, labels: { role: "test", name }, autoConfirm: true });
      const tokenFile = join(folder, `join-${name}`);
      await writeFile(tokenFile, token, { mode: 0o600 });
      const process = await started("device-agent", 0, {
        REEVE_JOIN_TOKEN_FILE: tokenFile,
        REEVE_DEVICE_REGISTRY_URL: `https://127.0.0.1:${way.port}`,
        REEVE_DEVICE_STATE_DIR: stateDir,
        REEVE_DEVICE_MODE: "all",
        REEVE_DEVICE_WRITE_ROOTS: work,
        REEVE_NATS_URL: "",
        ...options.deviceEnv,
      });
      return { name, process, way, work, stateDir };
    }),
  );
  await devicesOnline(registryClient(operator), names.length);
  const ready = parts.move();
  return {
    registries,
    policies,
    devices,
    postgres,
    nats,
    registry,
    policy: { url: `https://127.0.0.1:${policyBalancer.port}` },
    tokens,
    ca: authority.certificate,
    caFile: authority.caFile,
    certificate: (name) => authority.issue(name),
    expiredDevice: () => authority.expiredDevice(),
    natsLogin,
    policyDatabase: `${database}?schema=policy`,
    folder,
    close: () => ready.disposeAsync(),
  };
}

/** Resolves when so many devices can be reached. */
async function devicesOnline(registry: { listDevices: RegistryClient["listDevices"] }, count: number): Promise<void> {
  for (let tries = 0; tries < 600; tries++) {
    const { devices } = await registry.listDevices({});
    if (devices.filter(({ link }) => link === LinkState.ONLINE).length >= count) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error("the devices did not come");
}

/** TLS and one login. The services may say and hear what they need, and no more. */
async function natsArgs(
  folder: string,
  { user, pass }: { user: string; pass: string },
  files: CertificateFiles,
): Promise<string[]> {
  const config = join(folder, "nats.conf");
  await writeFile(
    config,
    `tls { cert_file: "${files.certFile}", key_file: "${files.keyFile}", ca_file: "${files.caFile}" }
authorization { users = [{ user: "${user}", password: "${pass}" }] }
`,
    { mode: 0o600 },
  );
  return ["-c", config];
}
