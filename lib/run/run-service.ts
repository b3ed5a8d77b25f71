import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import { authenticateByCertificate, firstThatKnows } from "../auth/authenticate.ts";
import type { KnownPeer } from "../auth/peer.ts";
import type { Authenticate } from "../auth/principal.ts";
import { createTokenFile } from "../auth/token-file.ts";
import type { EventBus } from "../events/bus.ts";
import { DEFAULT_TRUST_DOMAIN } from "../identity/spiffe.ts";
import type { TlsSource } from "../identity/tls-source.ts";
import { createLogger, type Level, type Logger } from "../log/log.ts";
import { createMetrics, type Metrics } from "../server/metrics.ts";
import type { Challenge, Fallback } from "../server/plain-http.ts";
import { createProbe } from "../server/probe.ts";
import { createServer, type Server } from "../server/server.ts";
import { shareScratchBuffer } from "../wire/scratch-writer.ts";
import type { ConnectionSettings } from "./connection-keys.ts";
import type { NatsSettings } from "./nats-keys.ts";
import { type OidcSettings, oidcAuthenticator } from "./oidc-keys.ts";
import { openBus } from "./open-bus.ts";
import type { ProbeSettings } from "./probe-keys.ts";
import { openTls, type TlsSettings } from "./tls-keys.ts";

/** A service that can be served: what every `createX` of a service returns. */
export interface Service {
  routes(router: ConnectRouter): void;
  services: DescService[];
  /** Plain HTTP paths, where the service has any. */
  fallback?: Fallback;
  /** Where callers of these get a token. */
  challenge?: Challenge;
  ready(): boolean;
  /** Dependencies that it does not reach, by name; see ServerOptions. Left out where there are none. */
  unavailable?(): readonly string[];
  /** Called once, with the address that the service is served at, when it listens. */
  onListening?(url: string): void;
  /** What to listen with in place of the files' material, as where more authorities are trusted than theirs. */
  tls?: TlsSource;
  /** Asked of each RPC's certificate that is sound; throws the fault that refuses it, such as a revoked one. */
  checkPeer?(peer: KnownPeer): void | Promise<void>;
  close(): Promise<void>;
}

export interface ServiceParts {
  logger: Logger;
  bus: EventBus;
  /** For a service's own metrics, beside those of its RPCs. */
  metrics: Metrics;
  /** As whom to call others; undefined in cleartext. */
  tls: TlsSource | undefined;
  trustDomain: string;
}

/** What a service's process needs besides the service. Settings may be left out that the service has no use for. */
export interface ProcessOptions extends TlsSettings, ProbeSettings, ConnectionSettings, NatsSettings, OidcSettings {
  /** The service's name, for the log. */
  name: string;
  host: string;
  port: number;
  /** The file with the hashes of the tokens that may call. */
  tokensFile: string;
  logLevel: Level;
  /** The services whose certificates may call, such as ["registry"]. Default: every service of the trust domain. */
  acceptServices?: readonly string[];
  create(parts: ServiceParts): Promise<Service>;
}

/** A service that is being served. */
export interface RunningService {
  server: Server;
  /** Drains the server, then closes the service. Rejects where a part could not be closed; the others are. Safe to repeat. */
  close(): Promise<void>;
}

/**
 * Serves one service in a process of its own. It listens only when the service is made, so that a port that answers
 * belongs to a service that has read its state.
 */
export async function runService(options: ProcessOptions): Promise<RunningService> {
  shareScratchBuffer();
  const logger = createLogger({ service: options.name, level: options.logLevel });
  const { trustDomain = DEFAULT_TRUST_DOMAIN } = options;
  const oidc = oidcAuthenticator(options);
  // A start that fails leaves nothing open: a process that ends can be started again.
  await using opened = new AsyncDisposableStack();
  const orClose = (close: () => unknown) =>
    opened.defer(async () => {
      try {
        await close();
      } catch (err: unknown) {
        logger.error({ err }, "the start failed, and not everything could be closed");
      }
    });
  const files = openTls(options, logger);
  orClose(() => files?.close());
  const bus = await openBus(options, options.name, logger);
  orClose(() => bus.close());
  const metrics = createMetrics();
  const service = await options.create({ logger, bus, metrics, tls: files, trustDomain });
  orClose(() => service.close());
  const tls = service.tls ?? files;
  const server = await createServer({
    host: options.host,
    port: options.port,
    ...(tls !== undefined && { tls }),
    allowPlaintext: options.allowPlaintext ?? false,
    routes: service.routes,
    services: service.services,
    ready: service.ready,
    unavailable: () => service.unavailable?.() ?? [],
    authenticate: authenticatorOf(options, service, trustDomain, oidc),
    logger,
    metrics,
    showMetrics: options.probePort === undefined,
    ...(options.connectionsPerAddress !== undefined && {
      limits: { connectionsPerAddress: options.connectionsPerAddress },
    }),
    ...(service.fallback === undefined ? {} : { fallback: service.fallback }),
    ...(service.challenge === undefined ? {} : { challenge: service.challenge }),
  });
  orClose(() => server.close());
  service.onListening?.(server.url);
  const probe = await openProbe(options, server, logger);
  opened.move();
  logger.info({ url: server.url, probe: probe?.url }, "ready");
  let closing: Promise<void> | undefined;
  const closeAll = async () => {
    // Whatever fails to close, the rest is closed.
    await using parts = new AsyncDisposableStack();
    parts.defer(() => files?.close());
    parts.defer(() => bus.close());
    // After the server, because who watches it sees the drain there.
    parts.defer(() => probe?.close());
    // Together: the server waits for streams that only the service ends, the service for calls that the server answers.
    const ends = await Promise.allSettled([server.close(), service.close()]);
    const failures = ends.flatMap((end) => (end.status === "rejected" ? [end.reason] : []));
    if (failures.length > 0) throw new AggregateError(failures, `the ${options.name} service did not close cleanly`);
  };
  const close = async () => {
    try {
      await closeAll();
      logger.info("stopped");
    } catch (err: unknown) {
      logger.error({ err }, "stopped, and not everything could be closed");
      throw err;
    }
  };
  return { server, close: () => (closing ??= close()) };
}

/** Certificates come first: a token beside a certificate is not looked at, and adds nothing. */
function authenticatorOf(
  { acceptServices, tokensFile }: ProcessOptions,
  service: Service,
  trustDomain: string,
  oidc: Authenticate | undefined,
): Authenticate {
  const certificates = authenticateByCertificate({
    trustDomain,
    ...(acceptServices !== undefined && { acceptServices }),
    check: (peer) => service.checkPeer?.(peer),
  });
  const tokens = createTokenFile(tokensFile);
  return firstThatKnows(certificates, tokens.authenticate, ...(oidc === undefined ? [] : [oidc]));
}

function openProbe({ probeHost, probePort }: ProcessOptions, { health, metrics }: Server, logger: Logger) {
  if (probePort === undefined) return undefined;
  return createProbe({ ...(probeHost !== undefined && { host: probeHost }), port: probePort, health, metrics, logger });
}

/**
 * Runs until a signal asks for the end: SIGTERM or SIGINT drains, a second one leaves at once. Rejects with what went wrong
 * in the end, so that the process does not say that all is well.
 */
export function untilSignal(running: { close(): Promise<void> }, signals: NodeJS.Process): Promise<void> {
  return new Promise((resolve, reject) => {
    let asked = false;
    const onSignal = () => {
      if (asked) signals.exit(130);
      asked = true;
      running.close().then(resolve, reject);
    };
    signals.on("SIGTERM", onSignal);
    signals.on("SIGINT", onSignal);
  });
}
