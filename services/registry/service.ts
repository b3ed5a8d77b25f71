import { join } from "node:path";
import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import type { Registry as MetricsRegistry } from "prom-client";
import { AttachService } from "../../gen/ts/reeve/device/v1/attach_service_pb.ts";
import { FanOutService } from "../../gen/ts/reeve/fanout/v1/fan_out_service_pb.ts";
import type { EventBus } from "../../lib/events/bus.ts";
import { createOutbox } from "../../lib/events/outbox.ts";
import { measureOutbox } from "../../lib/events/outbox-metric.ts";
import { createOutboxRelay } from "../../lib/events/outbox-relay.ts";
import type { Sealer } from "../../lib/identity/sealer.ts";
import type { TlsSource } from "../../lib/identity/tls-source.ts";
import { timeOrderedId } from "../../lib/ids/time-ordered-id.ts";
import type { Logger } from "../../lib/log/log.ts";
import type { Fallback } from "../../lib/server/plain-http.ts";
import { type Database, dialectOf, openDatabase } from "../../lib/store/database.ts";
import { lockFolder } from "../../lib/store/folder-lock.ts";
import { createGroupCommit } from "../../lib/store/group-commit.ts";
import { keepLease } from "../../lib/store/lease.ts";
import { builtInTools } from "../../lib/toolschema/built-in-tools.ts";
import { createBodies } from "./calls/bodies.ts";
import { createCalls } from "./calls/calls.ts";
import { createClaimer } from "./calls/claim.ts";
import { endCallsOfRevoked } from "./calls/end-revoked.ts";
import { followOwned } from "./calls/follow-owned.ts";
import { openBodies } from "./calls/open-bodies.ts";
import { createOwnership } from "./calls/ownership.ts";
import { createQuotas, DEFAULT_QUOTAS } from "./calls/quotas.ts";
import { receiveCall } from "./calls/receive.ts";
import { createCallStore } from "./calls/store.ts";
import { acceptAllTokens, type TokenStatuses } from "./calls/token-statuses.ts";
import { advertisedUrl } from "./cluster/advertised-url.ts";
import { joinCluster, newReplicaId } from "./cluster/membership.ts";
import { peerRoutes } from "./cluster/peer-routes.ts";
import { createPeers, type PeersOptions } from "./cluster/peers.ts";
import type { RegistryConfig } from "./config.ts";
import type { AdmissionPolicy } from "./devices/admission.ts";
import type { DeviceDialer } from "./devices/device-link.ts";
import { createDeviceStore, forgetDevice, freeName, recheckDevice } from "./devices/device-store.ts";
import { createDirectory } from "./devices/directory.ts";
import { createFleet, type Fleet } from "./devices/fleet.ts";
import { followKeyring } from "./devices/keyring-follower.ts";
import { attachRoutes } from "./devices/sessions.ts";
import type { Enrollment } from "./enrollment/enrollment.ts";
import { type ExtensionSettings, openEnrollment } from "./enrollment/extension.ts";
import { httpFaces } from "./faces/http/http-face.ts";
import { CALLER_SERVICES, callerRoutes } from "./faces/rpc.ts";
import { serveTypedTools, TYPED_SERVICES } from "./faces/typed/routes.ts";
import { createFanOuts } from "./fan-out/fan-outs.ts";
import { fanOutRoutes } from "./fan-out/routes.ts";
import { createFanOutStore } from "./fan-out/store.ts";
import { createRegistryMetrics } from "./metrics.ts";
import { createPolicyLink, type PolicyDialer } from "./policy-client/policy-link.ts";
import { openQueue } from "./queue/open-queue.ts";
import { checkSealingKey, sealerOf } from "./sealing.ts";
import { type RegistryTables, registryMigrations } from "./tables.ts";

/** Dependencies of a registry. */
export interface RegistryOptions {
  config: RegistryConfig;
  /** The way to policy. */
  policy: PolicyDialer;
  /** The way to each device that is dialed, by its name. Others attach. */
  devices: ReadonlyMap<string, DeviceDialer>;
  bus: EventBus;
  /** Connects to another replica, as this registry. Default: each replica serves only the devices whose sessions it holds. */
  peerTransport?: PeersOptions["transportTo"] | undefined;
  /** Which devices may connect. Default: those that have enrolled, and those that are dialed. */
  admission?: AdmissionPolicy;
  /** How devices enroll. Default: they cannot, because there is no TLS. */
  enrollment?: Partial<ExtensionSettings>;
  /** Seals what calls say in the database. Default: with a key in the state folder; needed on PostgreSQL. */
  sealer?: Sealer;
  /** Whether those whose calls waited for a device may still ask. Default: all may. */
  tokenStatuses?: TokenStatuses;
  /** Where the registry's own metrics go. Default nowhere. */
  metrics?: MetricsRegistry;
  logger: Logger;
  /** Milliseconds since 1970. Default the system's clock. */
  now?: () => number;
}

/** How long calls that run have to end when the registry closes, in milliseconds. Another replica or the next start resumes the others. */
const DRAIN_MS = 5000;

/** How long a replica that says nothing keeps what it holds, in milliseconds, unless the configuration says otherwise. */
const LEASE_MS = 5000;

/** A running registry. */
export interface Registry {
  routes(router: ConnectRouter): void;
  services: DescService[];
  /** Only what devices call: Attach, Join and RenewCertificate, for a port of their own. */
  deviceRoutes(router: ConnectRouter): void;
  /** Plain HTTP: GET /tools, POST /invoke and GET /calls/{id}. */
  fallback: Fallback;
  ready(): boolean;
  /** "policy" while it does not answer: without it nothing is allowed. */
  unavailable(): readonly string[];
  /** Notes the address: for the other replicas, and for a second process on the same folder. */
  onListening(url: string): void;
  /** Refuses the certificates of devices that were locked, removed or cloned. */
  checkPeer: Enrollment["checkPeer"];
  /** What to listen with: devices' certificates are trusted too. Left out in cleartext. */
  tls?: TlsSource;
  /** This replica's id. */
  replicaId: string;
  /** The devices, for what decides which of them may connect. */
  fleet: Pick<Fleet, "recheck" | "forget" | "pinned">;
  close(): Promise<void>;
}

/**
 * Starts a registry: opens its state, joins the other replicas where there are some, dials policy and the devices, and
 * resumes what an earlier process left open. Rejects with FolderInUse, before anything is read, where another process has
 * its state folder.
 */
export async function createRegistry(options: RegistryOptions): Promise<Registry> {
  const { config, bus, logger, now = Date.now } = options;
  // What closes last comes first. Whatever fails to close, or to start, keeps nothing else open.
  await using opened = new AsyncDisposableStack();
  // What is in a database on a server is shared by replicas, which lease what they own there.
  const folder =
    config.databaseUrl === undefined
      ? lockFolder(config.stateDir, { program: "registry", setting: "REEVE_REGISTRY_STATE_DIR" })
      : undefined;
  opened.defer(() => folder?.release());
  const sealer = await sealerOf(config, options.sealer);
  const bodies = createBodies(sealer);
  const db = opened.adopt(await openState(config), (one) => one.destroy());
  await checkSealingKey(db, sealer);
  const alone = dialectOf(db) === "sqlite";
  const self = newReplicaId();
  const leaseMs = config.leaseMs ?? LEASE_MS;
  // Each kind of write has transactions of its own, so that replicas never wait for each other in a circle.
  const writes = createGroupCommit(db, {
    onLazyError: (err) => logger.error({ err }, "a state that can be found out again was not written"),
  });
  const deviceWrites = createGroupCommit(db);
  const leadWrites = createGroupCommit(db);
  const membership = await joinCluster({ db, self, logger, ttlMs: leaseMs, renewMs: leaseMs * 0.3, now });
  const { peerTransport: transportTo } = options;
  const peers = alone || transportTo === undefined ? undefined : createPeers({ membership, transportTo });
  // After this replica has left, so that the others find it gone when they look.
  opened.defer(() => peers?.close());
  opened.defer(() => membership.close());
  for (const one of [writes, deviceWrites, leadWrites]) opened.defer(() => one.close());
  const relayLease = alone ? undefined : keepLease({ db, name: "registry-outbox", holder: self });
  opened.defer(() => relayLease?.close());
  const relay = createOutboxRelay({ db, writes, bus, logger, ...(relayLease && { lease: relayLease }) });
  opened.defer(() => relay.close());
  const store = createCallStore({ db, writes, outbox: createOutbox(db), bodies, owner: self, now });
  const ownership = createOwnership(db, leadWrites, self, bodies);
  openBodies({ db, retentionMs: config.callRetentionMs, self, logger, now }, opened);
  const catalog = builtInTools();
  const metrics = createRegistryMetrics(options.metrics, catalog);
  measureOutbox(options.metrics, relay.pending);
  const policy = createPolicyLink(options.policy);
  opened.defer(() => policy.close());
  const keys = followKeyring({
    awaitKeyring: policy.awaitKeyring,
    onError: (err) => logger.warn({ err }, "policy does not say which keys devices are to trust"),
  });

  opened.defer(() => keys.close());

  const directory = createDirectory(config.localDevice, () => fleet.catchUp(), config.defaultDevice);
  // Devices that are linked already wait for it.
  const enrolled = Promise.withResolvers<Enrollment>();
  const fleet: Fleet = await createFleet({
    dialers: options.devices,
    ...(config.heartbeatMs !== undefined && { heartbeatMs: config.heartbeatMs }),
    peers,
    directory,
    store: createDeviceStore(db, deviceWrites, self, now, (device, err) =>
      logger.error({ device, err }, "a device in the database cannot be read"),
    ),
    membership,
    keys,
    admission: options.admission ?? {
      mayAttach: async (...device) => (await enrolled.promise).mayAttach(...device),
      refusals: async (...devices) => (await enrolled.promise).refusals(...devices),
      onCloned: async (deviceId) => (await enrolled.promise).onCloned(deviceId),
    },
    wake: () => peers?.wake(),
    pollMs: alone ? 0 : leaseMs / 5,
    catalog,
    toolsAllowed: config.toolsAllowed ?? [],
    logger,
    now,
  });
  opened.defer(() => fleet.close());
  const enrollment = await openEnrollment(config.stateDir, options.enrollment, {
    db,
    fleet: {
      recheck: recheckDevice,
      forget: forgetDevice,
      free: freeName,
      announce: fleet.announce,
      pinned: fleet.pinned,
    },
    policy,
    logger,
    now,
  });
  opened.defer(() => enrollment.close());
  enrolled.resolve(enrollment);
  const queue = openQueue({ db, writes, directory, tokenStatuses: options.tokenStatuses, now });
  const calls = createCalls({
    self,
    queue,
    alone,
    store,
    ownership,
    quotas: createQuotas({ ...DEFAULT_QUOTAS, ...config.quotas }, metrics.quotaRefused),
    ask: (...question) => peers?.followCall(...question),
    policy,
    directory,
    logger,
    now,
    newCallId: () => timeOrderedId("call", now()),
    device: (id) => directory.byId(id),
    lockOf: (id) => enrollment.lockOf(id),
    link: (deviceId) => fleet.link(deviceId),
    hasSubscribers: () => bus.hasSubscribers(),
    onEvent: () => relay.wake(),
    onEnded: metrics.ended,
  });
  opened.defer(() => ownership.release());
  opened.defer(() => calls.close());
  opened.defer(
    endCallsOfRevoked({
      running: calls.running,
      tokenStatuses: options.tokenStatuses ?? acceptAllTokens,
      onError: (err) => logger.warn({ err }, "whether tokens were revoked cannot be found out"),
    }),
  );
  opened.defer(() => calls.drain(DRAIN_MS));
  const claimer = createClaimer({
    ownership,
    store,
    membership,
    catchUp: () => fleet.catchUp(),
    owned: calls.owned,
    resume: calls.resume,
    send: calls.sendOutcome,
    logger,
    everyMs: alone ? 0 : leaseMs / 5,
  });
  opened.defer(() => claimer.close());
  metrics.measure({
    linkedHere: () => fleet.connectedHere,
    openCalls: () => calls.open,
    claimed: () => claimer.claimed,
    policyUnavailable: () => policy.unavailable,
  });
  await fleet.started(config.startWaitMs ?? 3000);
  await claimer.look();
  logger.info({ replica: self, database: dialectOf(db), peers: peers !== undefined }, "registry replica started");
  const fanOutStore = createFanOutStore(db, writes, sealer, self);
  const fanOuts = createFanOuts({
    calls,
    directory,
    receive: (request) => receiveCall(request, { directory, now, newCallId: () => "" }),
    policy,
    store: fanOutStore,
    tokenStatuses: options.tokenStatuses ?? acceptAllTokens,
    membership,
    newFanOutId: () => timeOrderedId("fan", now()),
    logger,
    now,
  });
  opened.defer(() => fanOuts.close());
  await fanOuts.look();
  let closed = false;
  const owned = opened.move();
  const closing = new AbortController();
  const servePeers = peerRoutes({
    sharedDevice: fleet.shared,
    followOwned(callId, signal) {
      const live = calls.owned(callId);
      return live && followOwned(live, signal);
    },
    cancelOwned: (callId) => calls.owned(callId)?.canceled.abort(),
    onWake() {
      void fleet.catchUp().catch(() => undefined);
      void claimer.look().catch(() => undefined);
    },
    closing: closing.signal,
    isSecure: options.enrollment?.tls !== undefined,
  });

  return {
    routes(router) {
      callerRoutes(router, calls, directory, enrollment.locks);
      router.service(FanOutService, fanOutRoutes(fanOuts, { store: fanOutStore, calls }));
      attachRoutes(fleet.sessions)(router);
      enrollment.routes(router);
      if (peers !== undefined) servePeers(router);
      serveTypedTools(router, calls);
    },
    deviceRoutes(router) {
      attachRoutes(fleet.sessions)(router);
      enrollment.machineRoutes(router);
    },
    services: [...CALLER_SERVICES, FanOutService, AttachService, ...enrollment.services, ...TYPED_SERVICES],
    fallback: httpFaces(calls, directory),
    ready: () => !closed,
    unavailable: () => (policy.unavailable ? ["policy"] : []),
    onListening(url) {
      folder?.listensAt(url);
      if (peers === undefined) return;
      const address = advertisedUrl(config.advertiseUrl, url);
      membership
        .advertise(address)
        .then(peers.wake, (err: unknown) => logger.warn({ err }, "replica address not published"));
    },
    checkPeer: enrollment.checkPeer,
    ...(enrollment.tls && { tls: enrollment.tls }),
    replicaId: self,
    fleet,
    async close() {
      closed = true;
      closing.abort();
      queue.close();
      // Devices go to another replica at once, and report there or here what they run.
      fleet.drain();
      await owned.disposeAsync();
    },
  };
}

async function openState(config: RegistryConfig): Promise<Database<RegistryTables>> {
  const { databaseUrl: url, stateDir } = config;
  if (url !== undefined) return openDatabase<RegistryTables>({ url, migrations: registryMigrations });
  return openDatabase<RegistryTables>({ path: join(stateDir, "registry.db"), migrations: registryMigrations });
}
