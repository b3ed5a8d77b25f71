import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import { createTokenFile } from "../auth/token-file.ts";
import type { EventBus } from "../events/bus.ts";
import { createInProcessBus } from "../events/in-process-bus.ts";
import { createNatsBus } from "../events/nats-bus.ts";
import { createLogger, type Level, type Logger } from "../log/log.ts";
import type { Fallback } from "../serve/plain-http.ts";
import { createServer, type Server } from "../serve/server.ts";

/** A service that can be served: what every `createX` of a service returns. */
export interface Service {
  routes(router: ConnectRouter): void;
  services: DescService[];
  /** Plain HTTP paths, where the service has any. */
  fallback?: Fallback;
  ready(): boolean;
  close(): Promise<void>;
}

/** What a service's process needs besides the service. */
export interface ProcessOptions {
  /** The service's name, for the log. */
  name: string;
  host: string;
  port: number;
  /** The file with the hashes of the tokens that may call. */
  tokensFile: string;
  logLevel: Level;
  /** Lets the service listen on more than loopback in cleartext. */
  allowPlaintext?: boolean;
  /** NATS server for events. Undefined: events stay in the process. */
  natsUrl?: string | undefined;
  /** Makes the service. */
  create(parts: { logger: Logger; bus: EventBus }): Promise<Service>;
}

/** A service that is being served. */
export interface RunningService {
  server: Server;
  /** Drains the server, then closes the service. Safe to repeat. */
  close(): Promise<void>;
}

/**
 * Serves one service in a process of its own. It listens only when the service is made, so that a port that answers
 * belongs to a service that has read its state.
 */
export async function runService(options: ProcessOptions): Promise<RunningService> {
  const logger = createLogger({ service: options.name, level: options.logLevel });
  const bus = await openBus(options.natsUrl, options.name, logger);
  const service = await options.create({ logger, bus });
  const tokens = createTokenFile(options.tokensFile);
  const server = await createServer({
    host: options.host,
    port: options.port,
    allowPlaintext: options.allowPlaintext ?? false,
    routes: service.routes,
    services: service.services,
    ready: service.ready,
    authenticate: tokens.authenticate,
    logger,
    ...(service.fallback === undefined ? {} : { fallback: service.fallback }),
  });
  logger.info({ url: server.url }, "ready");
  let closing: Promise<void> | undefined;
  const close = async () => {
    // Together: the server waits for streams that only the service ends, the service for calls that the server answers.
    await Promise.all([server.close(), service.close()]);
    await bus.close();
    logger.info("stopped");
  };
  return { server, close: () => (closing ??= close()) };
}

/** The bus that a process is configured for. */
export function openBus(natsUrl: string | undefined, name: string, logger: Logger): Promise<EventBus> {
  if (natsUrl === undefined) return Promise.resolve(createInProcessBus({ logger }));
  return createNatsBus({ servers: [natsUrl], name, logger });
}

/** Runs until a signal asks for the end: SIGTERM or SIGINT drains, a second one leaves at once. */
export function untilSignal(running: { close(): Promise<void> }, signals: NodeJS.Process): Promise<void> {
  return new Promise((resolve) => {
    let asked = false;
    const onSignal = () => {
      if (asked) signals.exit(130);
      asked = true;
      void running.close().then(resolve);
    };
    signals.on("SIGTERM", onSignal);
    signals.on("SIGINT", onSignal);
  });
}
