import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "@connectrpc/connect";
import { type RegistryClient, registryClient } from "../client/registry.ts";
import { LinkState } from "../gen/ts/reeve/device/v1/device_pb.ts";
import { EnrollmentService } from "../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import { createServiceTransport } from "../lib/rpc-client/transport.ts";
import { freePorts } from "./free-port.ts";
import { type ServiceProcess, startServiceProcess } from "./service-process.ts";
import { startTcpProxy, type TcpProxy } from "./tcp-proxy.ts";

/** How one device differs from the others. */
export interface DeviceOptions {
  labels?: Readonly<Record<string, string>>;
  /**
   * How it and the registry meet. "dialed": it listens in cleartext, and the registry dials it. "proxied": it enrolls,
   * and dials the registries through a proxy of its own. A number: the same, but straight to that replica. Default:
   * "dialed".
   */
  link?: "dialed" | "proxied" | number;
}

/** A device agent in a process of its own. */
export interface DeviceProcess {
  name: string;
  process: ServiceProcess;
  /** Between it and the registries: it can be cut, or swallow everything. Undefined where there is none. */
  proxy: TcpProxy | undefined;
  /** Its only root to read and write in. */
  work: string;
  stateDir: string;
}

/** Devices that listen already, and the rest. */
export interface StartedDevices {
  /** The first device's name. */
  first: string | undefined;
  /** Where the registry dials, as its setting names it. */
  dialed: string;
  /** Starts those that dial. Resolves with all devices, in their order, when all are online. */
  attach(to: RegistryAccess): Promise<DeviceProcess[]>;
}

/** How to reach the registries, as an operator. */
export interface RegistryAccess {
  url: string;
  replicas: readonly { url: string }[];
  token: string;
  ca: string | undefined;
}

/** Where devices run. */
export interface DevicePlace {
  devices: Readonly<Record<string, DeviceOptions>>;
  folder: string;
  /** The root of each; undefined for a folder of its own. */
  work: string | undefined;
  env: Readonly<Record<string, string>>;
  /** The keys that sign grants, for a device that does not enroll. */
  grantKeyFile: string;
}

/** How long devices may take to come online. */
const PATIENCE_MS = 30_000;

/** Starts the devices that listen. */
export async function startDevices(parts: AsyncDisposableStack, place: DevicePlace): Promise<StartedDevices> {
  const entries = Object.entries(place.devices);
  const ports = await freePorts(entries.length);
  const folderOf = async (name: string) => {
    const own = place.work ?? join(place.folder, `work-${name}`);
    await mkdir(own, { recursive: true });
    return { work: own, stateDir: join(place.folder, `device-${name}`) };
  };
  const start = async (name: string, port: number, env: Record<string, string>, proxy?: TcpProxy) => {
    const { work, stateDir } = await folderOf(name);
    const process = await startServiceProcess("device", port, {
      ...place.env,
      REEVE_DEVICE_STATE_DIR: stateDir,
      REEVE_DEVICE_WRITE_ROOTS: work,
      ...env,
    });
    parts.defer(() => process.stop());
    return { name, process, proxy, work, stateDir };
  };
  const listening = await Promise.all(
    entries.map(async ([name, { link = "dialed", labels = {} }], at) => {
      if (link !== "dialed") return undefined;
      const port = ports[at] ?? 0;
      const text = Object.entries(labels).map(([label, value]) => `${label}=${value}`);
      return start(name, port, {
        REEVE_DEVICE_PORT: String(port),
        REEVE_DEVICE_NAME: name,
        REEVE_GRANT_KEY_FILE: place.grantKeyFile,
        ...(text.length > 0 && { REEVE_DEVICE_LABELS: text.join(",") }),
      });
    }),
  );
  const dialed = listening.flatMap((one) => (one ? [`${one.name}=${one.process.url}`] : [])).join(",");

  const attach = async (to: RegistryAccess): Promise<DeviceProcess[]> => {
    if (entries.length === 0) return [];
    const transport = createServiceTransport({ baseUrl: to.url, token: to.token, ...(to.ca && { ca: to.ca }) });
    try {
      const enrollments = createClient(EnrollmentService, transport);
      const all = await Promise.all(
        entries.map(async ([name, { link = "dialed", labels = {} }], at) => {
          const listens = listening[at];
          if (listens !== undefined) return listens;
          const { proxy, url } = await routeTo(parts, to, link);
          const { token } = await enrollments.createJoinToken({ name, labels, autoConfirm: true });
          const tokenFile = join(place.folder, `join-${name}`);
          await writeFile(tokenFile, token, { mode: 0o600 });
          return start(
            name,
            0,
            { REEVE_JOIN_TOKEN_FILE: tokenFile, ...(url && { REEVE_DEVICE_REGISTRY_URL: url }) },
            proxy,
          );
        }),
      );
      await allOnline(registryClient(transport), entries.length);
      return all;
    } finally {
      transport.close();
    }
  };
  return { first: entries[0]?.[0], dialed, attach };
}

/** The URL that a device dials, through a proxy where it has one. */
async function routeTo(
  parts: AsyncDisposableStack,
  access: RegistryAccess,
  link: DeviceOptions["link"],
): Promise<{ url: string | undefined; proxy?: TcpProxy }> {
  if (typeof link === "number") return { url: access.replicas[link]?.url };
  const { protocol, port } = new URL(access.url);
  const proxy = parts.adopt(await startTcpProxy({ port: Number(port) }), (one) => one.close());
  return { url: `${protocol}//127.0.0.1:${proxy.port}`, proxy };
}

async function allOnline(registry: RegistryClient, count: number): Promise<void> {
  for (const end = performance.now() + PATIENCE_MS; performance.now() < end; await sleep(50)) {
    const { devices } = await registry.listDevices({});
    if (devices.filter(({ link }) => link === LinkState.ONLINE).length >= count) return;
  }
  throw new Error(`fewer than ${count} devices came online in ${PATIENCE_MS} ms`);
}
