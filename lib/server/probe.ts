import { randomUUID } from "node:crypto";
import { createConnectRouter } from "@connectrpc/connect";
import type { Logger } from "../log/log.ts";
import { createAdapter } from "./adapter.ts";
import { createConnections } from "./connections.ts";
import { serveHealth } from "./health.ts";
import type { HealthState } from "./health-state.ts";
import { defaultLimits } from "./limits.ts";
import type { Metrics } from "./metrics.ts";
import { createObserver } from "./observe.ts";
import { onlyOwnHost } from "./own-host.ts";
import { createPlainHandler } from "./plain-handler.ts";
import { closePort, openPort } from "./port.ts";
import { prepareRoutes } from "./rpc.ts";
import { createStrangerLog } from "./stranger-log.ts";

/** How a probe port is opened. */
export interface ProbeOptions {
  /** Default "127.0.0.1". May be any: nothing here needs a secret. */
  host?: string;
  /** Default 0: any free port. */
  port?: number;
  /** Whose health is reported: the main server's, so that its drain shows here as well. */
  health: HealthState;
  metrics: Metrics;
  logger: Logger;
}

/** A probe port that listens. */
export interface Probe {
  /** Such as "http://127.0.0.1:7410". */
  readonly url: string;
  readonly port: number;
  /** Stops at once. */
  close(): Promise<void>;
}

/** Watchers of the health service that have not left by then are cut off. Milliseconds. */
const GRACE_MS = 100;

const CONNECTIONS = 64;

/**
 * A cleartext port beside a server with TLS, for those who have no certificate: an orchestrator's probes and Prometheus.
 * It serves grpc.health.v1, /healthz and /metrics, and nothing else. Its requests are neither counted nor logged, unless
 * they fail. Rejects with node's own error where the port cannot be had.
 */
export async function createProbe(options: ProbeOptions): Promise<Probe> {
  const { host = "127.0.0.1", port = 0, health, metrics } = options;
  const logger = options.logger.child({ part: "probe" }, { level: "warn" });
  const limits = { ...defaultLimits, maxConnections: CONNECTIONS };
  const shutdown = new AbortController();
  const strangers = createStrangerLog(logger);
  const shared = { authenticate: () => undefined, newRequestId: randomUUID, shutdownSignal: shutdown.signal };
  const prepared = prepareRoutes((router) => serveHealth(router, health, limits.maxHealthWatches), {
    ...shared,
    access: () => undefined,
    ready: () => true,
    observer: createObserver(logger, undefined, strangers),
    limits,
  });
  const router = createConnectRouter(prepared.router);
  prepared.routes(router);
  const connections = createConnections(limits);
  const handler = createAdapter({
    handlers: router.handlers,
    connections,
    isPublic: () => true,
    publicMaxBytes: limits.publicMaxBytes,
    bodyTimeoutMs: limits.requestTimeoutMs,
    fallback: createPlainHandler({
      ...shared,
      fallback: undefined,
      challenge: undefined,
      connections,
      health,
      metrics,
      logger,
      strangers,
    }),
    onLost: (path, cause) => logger.debug({ path, err: cause }, "the answer could not be written"),
  });
  const opened = await openPort({ host, port, handler: onlyOwnHost(handler, host), connections, limits, logger });
  const ending = { graceMs: GRACE_MS, lastWordsMs: GRACE_MS, onGraceOver: () => shutdown.abort() };
  let closing: Promise<void> | undefined;
  return { url: opened.url, port: opened.port, close: () => (closing ??= closePort(opened, ending)) };
}
