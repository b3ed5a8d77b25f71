import { randomUUID } from "node:crypto";
import type { DescService } from "@bufbuild/protobuf";
import { type ConnectRouter, createConnectRouter } from "@connectrpc/connect";
import { Health, HealthCheckResponse_ServingStatus as Status } from "../../gen/ts/grpc/health/v1/health_pb.ts";
import { ServerReflection } from "../../gen/ts/grpc/reflection/v1/reflection_pb.ts";
import { ServerReflection as ServerReflectionAlpha } from "../../gen/ts/grpc/reflection/v1alpha/reflection_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import type { Authenticate } from "../auth/principal.ts";
import { fault } from "../fault/fault.ts";
import type { TlsSource } from "../identity/tls-source.ts";
import type { Logger } from "../log/log.ts";
import { type AccessLookup, accessFromOption, rememberAccess } from "./access.ts";
import { createAdapter, type NodeHandler } from "./adapter.ts";
import { type Connections, createConnections } from "./connections.ts";
import { serveHealth } from "./health.ts";
import { createHealthState, type HealthState } from "./health-state.ts";
import { defaultLimits, type Limits } from "./limits.ts";
import { assertCleartextAllowed } from "./listener.ts";
import { createMetrics, type Metrics } from "./metrics.ts";
import { createObserver } from "./observe.ts";
import { onlyOwnHost } from "./own-host.ts";
import { createPlainHandler } from "./plain-handler.ts";
import type { Challenge, Fallback } from "./plain-http.ts";
import { closePort, openPort } from "./port.ts";
import { serveReflection } from "./reflection.ts";
import { indexServices } from "./reflection-index.ts";
import { prepareRoutes, servicesOf } from "./rpc.ts";
import { createStrangerLog } from "./stranger-log.ts";

export interface ServerOptions {
  /** Default "127.0.0.1". */
  host?: string;
  /** Default 0: any free port. */
  port?: number;
  /**
   * Turns TLS 1.3 on. Callers are asked for a certificate from its authorities; an invalid one is refused by the gate
   * with IDENTITY_REFUSED. Default: cleartext.
   */
  tls?: TlsSource;
  /**
   * A Unix socket to listen on in place of host and port. It is made with mode 0600, in place of one that stands there; its
   * folder has to be one that only the owner can enter, and no other process may listen at the same path.
   */
  socketPath?: string;
  /** Needed to listen on anything but loopback in cleartext. Default false. */
  allowPlaintext?: boolean;
  /** Registers the services. Health and reflection are the server's own. */
  routes: (router: ConnectRouter) => void;
  /** What reflection and health list. Default: every service that `routes` registered. */
  services?: readonly DescService[];
  authenticate: Authenticate;
  logger: Logger;
  /** Default: new ones, with the process's. */
  metrics?: Metrics;
  /** Whether anyone may read them at /metrics of this port. Default true; false where a probe port serves them. */
  showMetrics?: boolean;
  /** False: RPCs and plain paths are refused with NOT_READY, health says NOT_SERVING. Default: always true. */
  ready?: () => boolean;
  /**
   * True: nothing is served besides the routes, on a port for callers that know them: no health, no reflection and no
   * metrics. Default false.
   */
  onlyRoutes?: boolean;
  /** Dependencies that the service does not reach, by name. Health says NOT_SERVING then, and requests are taken all the same. */
  unavailable?: () => readonly string[];
  /** Who may call an RPC. Default: the RPC's own option. */
  access?: AccessLookup;
  /** Serves plain HTTP paths. Default: there are none. */
  fallback?: Fallback;
  /** What callers of plain paths read about where to get a token. Default: nothing. */
  challenge?: Challenge;
  limits?: Partial<Limits>;
  /** Default: random UUIDs. */
  newRequestId?: () => string;
}

export interface Server {
  /** Such as "https://127.0.0.1:7400", or "unix:/run/reeve/registry.sock". */
  readonly url: string;
  readonly host: string;
  readonly port: number;
  readonly health: HealthState;
  readonly metrics: Metrics;
  /**
   * Stops: no new connection or call is taken, health says NOT_SERVING, calls in flight have `graceMs` (default 5000) to
   * finish. Then handlers are aborted with NOT_READY, and a second later whatever is left is cut off. Safe to repeat.
   */
  close(graceMs?: number): Promise<void>;
}

const LOOPBACK = "127.0.0.1";

/** From the abort of the handlers to the cut, so that they can still say so to their callers. Milliseconds. */
const LAST_WORDS_MS = 1000;

/**
 * Listens on one port for Connect, gRPC and gRPC-Web over HTTP/1.1 and HTTP/2, with TLS or in cleartext, with reflection,
 * health, /healthz and, by default, /metrics. Rejects with INVALID_INPUT for a host that needs `tls` or `allowPlaintext`, and with
 * node's own error where the port cannot be had.
 */
export async function createServer(options: ServerOptions): Promise<Server> {
  const { host = LOOPBACK, port = 0, logger, tls } = options;
  if (tls === undefined) assertCleartextAllowed(host, options.allowPlaintext ?? false);
  const limits = { ...defaultLimits, ...options.limits };
  const metrics = options.metrics ?? createMetrics();
  const health = createHealthState(options.ready, options.unavailable);
  const shutdown = new AbortController();
  const connections = createConnections(limits);
  const handler = createHandler(options, { limits, metrics, health, connections, shutdownSignal: shutdown.signal });

  const { socketPath } = options;
  const opened = await openPort({ host, port, socketPath, handler, connections, limits, logger, tls });
  let closing: Promise<void> | undefined;
  const close = (graceMs: number): Promise<void> => {
    health.drain();
    const shuttingDown = fault(ErrorReason.NOT_READY, {}, { message: "the service is shutting down" });
    const onGraceOver = () => shutdown.abort(shuttingDown);
    return closePort(opened, { graceMs, lastWordsMs: LAST_WORDS_MS, onGraceOver });
  };
  const { url, port: bound } = opened;
  return { url, host, port: bound, health, metrics, close: (graceMs = 5000) => (closing ??= close(graceMs)) };
}

interface Parts {
  limits: Limits;
  metrics: Metrics;
  health: HealthState;
  connections: Connections;
  shutdownSignal: AbortSignal;
}

function createHandler(options: ServerOptions, parts: Parts): NodeHandler {
  const { limits, metrics, health, connections, shutdownSignal } = parts;
  const { authenticate, logger, fallback, access = accessFromOption, newRequestId = randomUUID } = options;
  const strangers = createStrangerLog(logger);
  const { onlyRoutes = false } = options;
  const shown = !onlyRoutes && (options.showMetrics ?? true) ? metrics : undefined;
  const prepared = prepareRoutes(
    (router) => {
      options.routes(router);
      const services = options.services ?? servicesOf(router);
      for (const service of services) health.set(service.typeName, Status.SERVING);
      if (onlyRoutes) return;
      serveHealth(router, health, limits.maxHealthWatches);
      serveReflection(router, indexServices([...services, Health, ServerReflection, ServerReflectionAlpha]));
    },
    {
      authenticate,
      access,
      ready: () => health.isReady,
      observer: createObserver(logger, metrics, strangers),
      newRequestId,
      limits,
      shutdownSignal,
    },
  );
  const router = createConnectRouter(prepared.router);
  prepared.routes(router);
  const accessOf = rememberAccess(access);
  const handler = createAdapter({
    handlers: router.handlers,
    direct: prepared.direct,
    connections,
    isPublic: (method) => accessOf(method).public,
    publicMaxBytes: limits.publicMaxBytes,
    bodyTimeoutMs: limits.requestTimeoutMs,
    fallback: createPlainHandler({
      authenticate,
      fallback,
      challenge: options.challenge,
      connections,
      health,
      showHealth: !onlyRoutes,
      metrics: shown,
      logger,
      newRequestId,
      strangers,
      onAnswered: (status) => metrics.answered(status),
      shutdownSignal,
    }),
    local: options.socketPath !== undefined,
    onLost: (path, cause) => logger.debug({ path, err: cause }, "the answer could not be written"),
  });
  const isOpen = options.tls === undefined && options.socketPath === undefined;
  return onlyOwnHost(handler, isOpen ? (options.host ?? LOOPBACK) : undefined);
}
