import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import { AttachService } from "../../gen/ts/reeve/device/v1/attach_service_pb.ts";
import { FanOutService } from "../../gen/ts/reeve/fanout/v1/fan_out_service_pb.ts";
import { ScheduleService } from "../../gen/ts/reeve/schedule/v1/schedule_service_pb.ts";
import type { TlsSource } from "../../lib/identity/tls-source.ts";
import type { Challenge, Fallback } from "../../lib/server/plain-http.ts";
import { dialectOf } from "../../lib/store/database.ts";
import { builtInTools } from "../../lib/toolschema/built-in-tools.ts";
import { followOwned } from "./calls/follow-owned.ts";
import { acceptAllTokens } from "./calls/token-statuses.ts";
import { advertisedUrl } from "./cluster/advertised-url.ts";
import { peerRoutes } from "./cluster/peer-routes.ts";
import type { Fleet } from "./devices/fleet.ts";
import { attachRoutes } from "./devices/sessions.ts";
import type { Enrollment } from "./enrollment/enrollment.ts";
import { httpFaces } from "./faces/http/http-face.ts";
import { createMcpFace } from "./faces/mcp/mcp-face.ts";
import { mcpChallenge, serveResourceMetadata } from "./faces/mcp/protected-resource.ts";
import { CALLER_SERVICES, callerRoutes } from "./faces/rpc.ts";
import { serveTypedTools, TYPED_SERVICES } from "./faces/typed/routes.ts";
import { fanOutRoutes } from "./fan-out/routes.ts";
import { createRegistryMetrics } from "./metrics.ts";
import type { RegistryOptions, Setup } from "./options.ts";
import { createPolicyLink } from "./policy-client/policy-link.ts";
import { scheduleRoutes } from "./schedules/routes.ts";
import { openCalls } from "./wiring/calls.ts";
import { openCluster } from "./wiring/cluster.ts";
import { openDevices } from "./wiring/devices.ts";
import { openFanOuts } from "./wiring/fan-outs.ts";
import { openSchedules } from "./wiring/schedules.ts";
import { openState, openWrites } from "./wiring/state.ts";

/** A running registry. */
export interface Registry {
  routes(router: ConnectRouter): void;
  services: DescService[];
  /** Only what devices call: Attach, Join and RenewCertificate, for a port of their own. */
  deviceRoutes(router: ConnectRouter): void;
  /** Plain HTTP: see `httpFaces`. */
  fallback: Fallback;
  /** Of `/mcp`: see `mcpChallenge`. */
  challenge: Challenge;
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
  fleet: Pick<Fleet, "recheck">;
  close(): Promise<void>;
}

/**
 * Starts a registry: opens its state, joins the other replicas where there are some, dials policy and the devices, and
 * resumes what an earlier process left open. Rejects with FolderInUse, before anything is read, where another process has
 * its state folder.
 */
export async function createRegistry(options: RegistryOptions): Promise<Registry> {
  const setup: Setup = { now: Date.now, tokenStatuses: acceptAllTokens, ...options };
  const { config, logger } = setup;
  // What closes last comes first. Whatever fails to close, or to start, keeps nothing else open.
  await using parts = new AsyncDisposableStack();
  const state = await openState(setup, parts);
  const cluster = await openCluster(setup, state, parts);
  const writes = openWrites(setup, state, parts);
  const catalog = builtInTools();
  const metrics = createRegistryMetrics(setup.metrics, catalog);
  const policy = createPolicyLink(setup.policy);
  parts.defer(() => policy.close());
  const devices = await openDevices(setup, state, cluster, policy, catalog, parts);
  const { enrollment, fleet, directory } = devices;
  const { calls, claimer } = openCalls({ setup, state, cluster, writes, policy, devices, metrics }, parts);
  metrics.measure({
    linkedHere: () => fleet.connectedHere,
    openCalls: () => calls.open,
    claimed: () => claimer.claimed,
    policyUnavailable: () => policy.unavailable,
  });
  await fleet.started(config.startWaitMs ?? 3000);
  await claimer.look();
  const { self, folder } = state;
  const { membership, peers } = cluster;
  logger.info({ replica: self, database: dialectOf(state.db), peers: peers !== undefined }, "registry replica started");
  const fanOutParts = { setup, state, cluster, writes, policy, directory, calls };
  const { fanOuts, store: fanOutStore } = openFanOuts(fanOutParts, parts);
  await fanOuts.look();
  const schedules = openSchedules({ setup, state, writes, directory, calls }, parts);

  const mcp = createMcpFace(calls, directory, { logger, config });
  parts.defer(() => mcp.close());
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
    isSecure: setup.enrollment?.tls !== undefined,
  });
  const faces = httpFaces(calls, directory, mcp);
  const metadata = serveResourceMetadata(config.protectedResource);
  const challenge = mcpChallenge(config.protectedResource);
  const opened = parts.move();
  return {
    routes(router) {
      callerRoutes(router, calls, directory, enrollment.locks);
      router.service(FanOutService, fanOutRoutes(fanOuts, { store: fanOutStore, calls }));
      router.service(ScheduleService, scheduleRoutes(schedules));
      attachRoutes(fleet.sessions)(router);
      enrollment.routes(router);
      if (peers !== undefined) servePeers(router);
      serveTypedTools(router, calls);
    },
    deviceRoutes(router) {
      attachRoutes(fleet.sessions)(router);
      enrollment.machineRoutes(router);
    },
    services: [
      ...CALLER_SERVICES,
      FanOutService,
      ScheduleService,
      AttachService,
      ...enrollment.services,
      ...TYPED_SERVICES,
    ],
    fallback: (request, response) => metadata(request, response) || faces(request, response),
    challenge,
    ready: () => !closing.signal.aborted,
    unavailable: () => (policy.unavailable ? ["policy"] : []),
    onListening(url) {
      folder?.listensAt(url);
      if (peers === undefined) return;
      membership
        .advertise(advertisedUrl(config.advertiseUrl, url))
        .then(peers.wake, (err: unknown) => logger.warn({ err }, "replica address not published"));
    },
    checkPeer: enrollment.checkPeer,
    ...(enrollment.tls && { tls: enrollment.tls }),
    replicaId: self,
    fleet,
    async close() {
      closing.abort();
      // Devices go to another replica at once, and report there or here what they run.
      fleet.drain();
      await opened.disposeAsync();
    },
  };
}
