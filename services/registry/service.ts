import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import { RegistryService } from "../../gen/ts/reeve/registry/v1/registry_service_pb.ts";
import type { EventBus } from "../../lib/events/bus.ts";
import { createOutbox } from "../../lib/events/outbox.ts";
import { createOutboxRelay } from "../../lib/events/outbox-relay.ts";
import { timeOrderedId } from "../../lib/ids/time-ordered-id.ts";
import type { Logger } from "../../lib/log/log.ts";
import type { Fallback } from "../../lib/serve/plain-http.ts";
import { openDatabase } from "../../lib/store/database.ts";
import { createGroupCommit } from "../../lib/store/group-commit.ts";
import { createCalls } from "./calls/calls.ts";
import { createCallStore } from "./calls/store.ts";
import type { RegistryConfig } from "./config.ts";
import type { DeviceOpener } from "./devices/device-link.ts";
import { createDirectory } from "./devices/directory.ts";
import { createFleet } from "./devices/fleet.ts";
import { httpFaces } from "./http/faces.ts";
import { createPolicyLink, type PolicyOpener } from "./policy/policy-link.ts";
import { registryRoutes } from "./routes.ts";
import { type RegistryTables, registryMigrations } from "./tables.ts";
import { builtInTools } from "./tools/built-in-tools.ts";

/** What a registry rests on. */
export interface RegistryOptions {
  config: RegistryConfig;
  /** The way to policy. */
  policy: PolicyOpener;
  /** The way to each device, by its name. */
  devices: ReadonlyMap<string, DeviceOpener>;
  bus: EventBus;
  logger: Logger;
  /** Milliseconds since 1970. Default the system's clock. */
  now?: () => number;
}

/** How long calls that run have to end when the registry closes, in milliseconds. The next start takes up the others. */
const DRAIN_MS = 5000;

/** A running registry. */
export interface Registry {
  routes(router: ConnectRouter): void;
  services: DescService[];
  /** Plain HTTP: GET /tools and POST /invoke. */
  fallback: Fallback;
  ready(): boolean;
  close(): Promise<void>;
}

/** Starts a registry: opens its state, dials policy and the devices, and takes up what an earlier process left open. */
export async function createRegistry(options: RegistryOptions): Promise<Registry> {
  const { config, bus, logger, now = Date.now } = options;
  await mkdir(config.stateDir, { recursive: true, mode: 0o700 });
  const path = join(config.stateDir, "registry.db");
  const db = await openDatabase<RegistryTables>({ path, migrations: registryMigrations });
  const writes = createGroupCommit(db, {
    onLazyError: (err) => logger.error({ err }, "a state that can be found out again was not written"),
  });
  const store = createCallStore(db, writes, createOutbox(db));
  const relay = createOutboxRelay({ db, writes, bus, logger });
  const directory = createDirectory(config.localDevice);
  const policy = createPolicyLink(options.policy);
  const fleet = await createFleet({
    openers: options.devices,
    directory,
    catalogue: builtInTools(),
    toolsAllowed: config.toolsAllowed ?? [],
    db,
    writes,
    logger,
    now,
  });
  const calls = createCalls({
    store,
    policy,
    directory,
    logger,
    now,
    newCallId: () => timeOrderedId("call", now()),
    device: (id) => directory.byId(id),
    link: (deviceId) => fleet.link(deviceId),
    isHeard: () => bus.isHeard(),
    onEvent: () => relay.nudge(),
  });
  await fleet.settled(config.startWaitMs ?? 3000);
  await calls.recover();
  let closed = false;

  return {
    routes: (router) => router.service(RegistryService, registryRoutes(calls, directory)),
    services: [RegistryService],
    fallback: httpFaces(calls, directory),
    ready: () => !closed,
    async close() {
      closed = true;
      await calls.drain(DRAIN_MS);
      await fleet.close();
      await policy.close();
      await relay.close();
      await writes.close();
      await db.destroy();
    },
  };
}
