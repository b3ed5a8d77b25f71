import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { createTokenFile } from "../../lib/auth/token-file.ts";
import { freePorts } from "../../testkit/free-port.ts";
import { startNatsServer } from "../../testkit/nats-server.ts";
import { startPostgresServer } from "../../testkit/postgres-server.ts";
import { makeServiceAuthority, tlsEnv } from "../../testkit/service-certificates.ts";
import { type ServiceProcess, startServiceProcess } from "../../testkit/service-process.ts";
import { type DevicePlace, joinedDevice, listeningDevice } from "./device-process.ts";
import { type ProcessMetrics, readMetrics } from "./process-metrics.ts";

/** What a control plane consists of. */
export interface PlaneOptions {
  /** How many replicas of the registry. More than one need PostgreSQL. Default 1. */
  registries?: number;
  /** Where the registry and policy keep what they know. Default SQLite. */
  database?: "sqlite" | "postgres";
  /** Whether there is a NATS server, by which replicas reach each other. Default false. */
  nats?: boolean;
  /** Names of devices, each in a process of its own, that dial the replica of this number. */
  attached?: Readonly<Record<string, number>>;
  /** The name of a device that listens and is dialed. Default none. */
  dialed?: string;
  /** More environment for the registries. */
  env?: Readonly<Record<string, string>>;
}

/** A replica of the registry. */
export interface Replica {
  process: ServiceProcess;
  url: string;
  /** What the process says of itself on its probe port. */
  metrics(): Promise<ProcessMetrics>;
}

/** Registries, policy and devices as processes of their own, with mTLS between them. */
export interface Plane {
  replicas: readonly Replica[];
  policy: Pick<Replica, "metrics">;
  /** Bearer tokens, by what their holder may be. */
  tokens: { operator: string; agent: string };
  /** Whom callers have to trust, PEM. */
  ca: string;
  /** The folder that devices in processes of their own may use. */
  work: string;
  close(): Promise<void>;
}

/** Starts one on loopback, with the policy file of the benchmarks. */
export async function startPlane(options: PlaneOptions = {}): Promise<Plane> {
  await using parts = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "reeve-bench-"));
  parts.defer(() => rm(folder, { recursive: true, force: true }));
  const work = join(folder, "work");
  await mkdir(work);
  const authority = await makeServiceAuthority(join(folder, "certs"));
  const tokensFile = join(folder, "tokens.json");
  const issue = (role: Role, name: string) => createTokenFile(tokensFile).issueToken({ name, roles: [role] }).token;
  const tokens = { operator: issue(Role.OPERATOR, "owner"), agent: issue(Role.AGENT, "agent") };
  const serviceToken = issue(Role.SERVICE, "registry");
  const sealingKey = join(folder, "sealing.key");
  await writeFile(sealingKey, `${randomBytes(32).toString("base64")}\n`, { mode: 0o600 });
  const nats = options.nats ? parts.adopt(await startNatsServer(), (one) => one.close()) : undefined;
  const shared = {
    REEVE_LOG_LEVEL: "info",
    REEVE_TOKENS_FILE: tokensFile,
    REEVE_SEALING_KEY_FILE: sealingKey,
  };
  const postgres =
    options.database === "postgres" ? parts.adopt(await startPostgresServer(), (one) => one.close()) : undefined;
  const database = await postgres?.newDatabase();
  const databaseEnv = (service: string) =>
    database === undefined ? {} : { [`REEVE_${service.toUpperCase()}_DATABASE_URL`]: `${database}?schema=${service}` };
  const startReplica = async (service: string, ports: readonly number[], env: Record<string, string>, at = 0) => {
    const [port = 0, probePort = 0] = ports;
    const name = service.toUpperCase();
    const files = await authority.issue(service);
    const started = await startServiceProcess(service, port, {
      ...shared,
      ...tlsEnv(files),
      ...databaseEnv(service),
      ...(nats && { REEVE_NATS_URL: nats.url }),
      [`REEVE_${name}_PORT`]: String(port),
      [`REEVE_${name}_STATE_DIR`]: join(folder, `${service}-${at}`),
      REEVE_PROBE_PORT: String(probePort),
      ...env,
    });
    parts.adopt(started, (one) => one.stop());
    return { process: started, url: started.url, metrics: () => readMetrics(probePort) };
  };
  const place: DevicePlace = { folder, work, shared, grantKeyFile: join(folder, "policy-0", "grant.pub") };

  const count = options.registries ?? 1;
  const ports = await freePorts(2 * count + 3);
  const policyFile = join(import.meta.dirname, "..", "servers", "policy.yaml");
  const policy = await startReplica("policy", ports.splice(0, 2), { REEVE_POLICY_FILE: policyFile });
  const [devicePort = 0] = ports.splice(0, 1);
  const { dialed } = options;
  if (dialed !== undefined) parts.adopt(await listeningDevice(place, dialed, devicePort), (one) => one.stop());
  const env = {
    REEVE_POLICY_URL: policy.url,
    REEVE_SERVICE_TOKEN: serviceToken,
    REEVE_DEVICES: dialed === undefined ? "" : `${dialed}=http://127.0.0.1:${devicePort}`,
    ...options.env,
  };
  const replicas: Replica[] = [];
  for (let at = 0; at < count; at++) replicas.push(await startReplica("registry", ports.splice(0, 2), env, at));
  for (const [name, at] of Object.entries(options.attached ?? {})) {
    const to = { url: replicas[at]?.url ?? "", token: tokens.operator, ca: authority.certificate };
    parts.adopt(await joinedDevice(place, name, to), (one) => one.stop());
  }
  const ready = parts.move();
  return { replicas, policy, tokens, ca: authority.certificate, work, close: () => ready.disposeAsync() };
}
