import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ControlPlane, type ControlPlaneOptions, startControlPlane } from "./control-plane.ts";
import type { DeviceOptions, DeviceProcess } from "./device-process.ts";
import { type SecuredNats, startSecuredNats } from "./nats-access.ts";
import { type PostgresServer, startPostgresServer } from "./postgres-server.ts";
import { makeServiceAuthority, type ServiceAuthority } from "./service-certificates.ts";
import type { TcpProxy } from "./tcp-proxy.ts";

/** A device that dials the registries through a proxy of its own. */
export type DistributedDevice = DeviceProcess & { proxy: TcpProxy };

/** A control plane as a platform runs it: replicas behind load balancers, a shared database, a bus, all with mTLS. */
export interface Distributed extends ControlPlane {
  devices: readonly DistributedDevice[];
  postgres: PostgresServer;
  nats: SecuredNats;
  authority: ServiceAuthority;
  ca: string;
}

/** Starts PostgreSQL, NATS with TLS and a login, two of each service, and three devices that enroll and dial. */
export async function startDistributed(options: ControlPlaneOptions = {}): Promise<Distributed> {
  await using parts = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "reeve-shared-"));
  parts.defer(() => rm(folder, { recursive: true, force: true }));
  const authority = await makeServiceAuthority(join(folder, "certs"));
  const nats = parts.adopt(await startSecuredNats(folder, authority), (one) => one.close());
  const postgres = parts.adopt(await startPostgresServer(), (one) => one.close());
  const device = (name: string): DeviceOptions => ({ link: "proxied", labels: { role: "test", name } });
  const plane = parts.adopt(
    await startControlPlane({
      registries: 2,
      policies: 2,
      devices: { this: device("this"), second: device("second"), third: device("third") },
      ownFolders: true,
      ...options,
      postgres,
      nats,
      authority,
    }),
    (one) => one.close(),
  );
  const devices = plane.devices.map(({ proxy, ...device }) => {
    if (proxy === undefined) throw new Error(`${device.name} has no proxy`);
    return { ...device, proxy };
  });
  const started = parts.move();
  return {
    ...plane,
    devices,
    postgres,
    nats,
    authority,
    ca: authority.certificate,
    close: () => started.disposeAsync(),
  };
}
