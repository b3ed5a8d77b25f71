import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ControlPlane, type ControlPlaneOptions, startControlPlane } from "../../testkit/control-plane.ts";
import { openNats } from "../../testkit/nats-access.ts";
import { startNatsServer } from "../../testkit/nats-server.ts";
import { startPostgresServer } from "../../testkit/postgres-server.ts";
import { makeServiceAuthority } from "../../testkit/service-certificates.ts";
import type { ServiceProcess } from "../../testkit/service-process.ts";
import { type ProcessMetrics, readMetrics } from "./process-metrics.ts";

/** What a control plane consists of. Default: one registry with SQLite and without NATS, and no device. */
export interface PlaneOptions extends Pick<ControlPlaneOptions, "registries" | "devices"> {
  database?: "sqlite" | "postgres";
  nats?: boolean;
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

/** A control plane with mTLS, and how to measure its processes. */
export interface Plane extends Pick<ControlPlane, "tokens" | "work" | "close"> {
  replicas: readonly Replica[];
  policy: Pick<Replica, "metrics">;
  ca: string;
}

/** Starts one with the policy file of the benchmarks. */
export async function startPlane({ database, nats, env = {}, ...options }: PlaneOptions = {}): Promise<Plane> {
  await using parts = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "reeve-bench-"));
  parts.defer(() => rm(folder, { recursive: true, force: true }));
  const authority = await makeServiceAuthority(folder);
  const server = nats ? parts.adopt(await startNatsServer(), (one) => one.close()) : undefined;
  const postgres =
    database === "postgres" ? parts.adopt(await startPostgresServer({ fsync: true }), (one) => one.close()) : undefined;
  const plane = await startControlPlane({
    devices: {},
    mode: "user",
    policyFile: join(import.meta.dirname, "..", "servers", "policy.yaml"),
    probes: true,
    authority,
    registryEnv: env,
    ...(server && { nats: openNats(server) }),
    ...(postgres && { postgres }),
    ...options,
  });
  parts.defer(() => plane.close());
  const { registries, probes, tokens, work } = plane;
  const metrics = (port = 0) => readMetrics(port);
  const ready = parts.move();
  return {
    replicas: registries.map((process, at) => ({
      process,
      url: process.url,
      metrics: () => metrics(probes.registries[at]),
    })),
    policy: { metrics: () => metrics(probes.policies[0]) },
    tokens,
    ca: authority.certificate,
    work,
    close: () => ready.disposeAsync(),
  };
}
