import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "@connectrpc/connect";
import { type RegistryClient, registryClient } from "../../client/registry.ts";
import { LinkState } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import { EnrollmentService } from "../../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import { createServiceTransport } from "../../lib/serve/client.ts";
import { type ServiceProcess, startServiceProcess } from "../../testkit/service-process.ts";

/** Where device agents run. */
export interface DevicePlace {
  folder: string;
  /** The only root of each. */
  work: string;
  /** Environment of all processes. */
  shared: Readonly<Record<string, string>>;
  /** The keys that sign grants, for a device that does not join. */
  grantKeyFile: string;
}

/** How long a device may take to be there. */
const PATIENCE_MS = 30_000;

/** Starts a device agent that enrolls with a registry and dials it. Resolves when it is online. */
export async function joinedDevice(
  place: DevicePlace,
  name: string,
  to: { url: string; token: string; ca: string },
): Promise<ServiceProcess> {
  const transport = createServiceTransport({ baseUrl: to.url, token: to.token, ca: to.ca });
  try {
    const enrollments = createClient(EnrollmentService, transport);
    const { token } = await enrollments.createJoinToken({ name, autoConfirm: true });
    const tokenFile = join(place.folder, `join-${name}`);
    await writeFile(tokenFile, token, { mode: 0o600 });
    const started = await startServiceProcess("device-agent", 0, {
      ...environmentOf(place, name),
      REEVE_JOIN_TOKEN_FILE: tokenFile,
    });
    await online(registryClient(transport), name);
    return started;
  } finally {
    transport.close();
  }
}

/** Starts a device agent that listens in cleartext on loopback and waits for a registry to dial it. */
export function listeningDevice(place: DevicePlace, name: string, port: number): Promise<ServiceProcess> {
  return startServiceProcess("device-agent", port, {
    ...environmentOf(place, name),
    REEVE_DEVICE_PORT: String(port),
    REEVE_DEVICE_NAME: name,
    REEVE_GRANT_KEY_FILE: place.grantKeyFile,
  });
}

function environmentOf({ folder, work, shared }: DevicePlace, name: string): Record<string, string> {
  return {
    ...shared,
    REEVE_DEVICE_STATE_DIR: join(folder, `device-${name}`),
    REEVE_DEVICE_MODE: "user",
    REEVE_DEVICE_WRITE_ROOTS: work,
  };
}

async function online(registry: Pick<RegistryClient, "listDevices">, name: string): Promise<void> {
  for (const end = performance.now() + PATIENCE_MS; performance.now() < end; await sleep(50)) {
    const { devices } = await registry.listDevices({});
    if (devices.some((device) => device.name === name && device.link === LinkState.ONLINE)) return;
  }
  throw new Error(`the device ${name} did not come within ${PATIENCE_MS} ms`);
}
