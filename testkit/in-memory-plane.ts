import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ConnectRouter } from "@connectrpc/connect";
import { type RegistryClient, registryClient } from "../client/registry.ts";
import { Role } from "../gen/ts/reeve/options/v1/access_pb.ts";
import type { Principal } from "../lib/auth/principal.ts";
import { createInProcessBus } from "../lib/events/in-process-bus.ts";
import { createLogger, type Logger } from "../lib/log/log.ts";
import { inMemoryTransport } from "../lib/server/in-memory.fixture.ts";
import { createPolicyService, type PolicyServiceOptions } from "../services/policy/service.ts";
import { deviceOver, policyOver } from "../services/registry/dialers.ts";
import type { RegistryOptions } from "../services/registry/options.ts";
import { createRegistry } from "../services/registry/service.ts";

export const OPERATOR: Principal = { id: "owner", kind: "operator", roles: [Role.OPERATOR], name: "owner" };

/** An agent of an id. */
export const agentOf = (id: string): Principal => ({ id, kind: "agent", roles: [Role.AGENT], name: id });

const SERVICE: Principal = { id: "registry", kind: "service", roles: [Role.SERVICE], name: "registry" };

/** A registry and policy in this process, without sockets, with devices that a test plays. */
export interface InMemoryPlane {
  as(principal: Principal): RegistryClient;
  /** Closes the registry and starts another one on its database, with these devices. */
  restartRegistry(devices: Devices): Promise<void>;
  close(): Promise<void>;
}

/** Devices by name. */
type Devices = Readonly<Record<string, { routes(router: ConnectRouter): void }>>;

/** The quotas of each service; the rest is the default. */
export interface InMemoryPlaneOptions {
  logger?: Logger;
  policyQuotas?: PolicyServiceOptions["config"]["quotas"];
  registryQuotas?: RegistryOptions["config"]["quotas"];
}

/** Starts one with these devices. */
export async function startInMemoryPlane(
  first: Devices,
  { logger = createLogger({ service: "test", level: "silent" }), ...quotas }: InMemoryPlaneOptions = {},
): Promise<InMemoryPlane> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-test-"));
  const bus = createInProcessBus();
  const policy = await createPolicyService({
    config: { stateDir: join(folder, "policy"), ...(quotas.policyQuotas && { quotas: quotas.policyQuotas }) },
    logger,
    bus,
  });
  const overMemory = ({ routes }: Devices[string]) => inMemoryTransport(routes, { principal: SERVICE });
  const start = (devices: Devices) =>
    createRegistry({
      config: { stateDir: join(folder, "registry"), ...(quotas.registryQuotas && { quotas: quotas.registryQuotas }) },
      policy: policyOver(overMemory(policy)),
      devices: new Map(Object.entries(devices).map(([name, device]) => [name, deviceOver(overMemory(device))])),
      bus,
      logger,
    });
  let registry = await start(first);
  return {
    as: (principal) => registryClient(inMemoryTransport(registry.routes, { principal })),
    async restartRegistry(devices) {
      await registry.close();
      registry = await start(devices);
    },
    async close() {
      await registry.close();
      await policy.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
