import { readFile } from "node:fs/promises";
import { type ConnectionOptions, connect, credsAuthenticator, Events, type NatsConnection } from "nats";
import { busNotReady, type EventLogger } from "./bus.ts";
import { natsTls } from "./nats-tls.ts";

/** How long connecting, and one request, may take unless the options say otherwise, in milliseconds. */
export const DEFAULT_TIMEOUT_MS = 5_000;

/** Where the servers are and how to log in. */
export interface NatsOptions {
  /** Such as "nats://10.0.0.5:4222"; any of a cluster. */
  servers: readonly string[];
  /** Shown in the server's list of connections. Default "reeve". */
  name?: string;
  user?: string;
  pass?: string;
  token?: string;
  /** A file with a user's JWT and seed, as `nsc generate creds` writes it. */
  credsFile?: string;
  /** Files in PEM form; turns TLS on. */
  tls?: { caFile?: string; certFile?: string; keyFile?: string };
  /** Copies of the stream in a cluster: 1, 3 or 5. Counts when the stream is made. Default 1. */
  replicas?: number;
  /** How long connecting, and one request, may take, in milliseconds. Default 5000. */
  timeoutMs?: number;
  logger?: EventLogger;
}

/** Whether the connection is up. */
export interface ConnectionWatch {
  isUp(): boolean;
  /** True when it will never be up again. */
  isClosed(): boolean;
  /** Resolves when the connection is up, or closed. */
  whenUp(): Promise<void>;
  /** Calls back each time the connection breaks, until the returned function is called. */
  onDown(listener: () => void): () => void;
}

/**
 * Connects to NATS and reconnects for ever after. Rejects ERROR_REASON_NOT_READY where no server answers or it refuses
 * the login. Only the files beside this one that begin with "nats-" know the package `nats`.
 */
export async function dialNats(options: NatsOptions): Promise<NatsConnection> {
  const { servers, name = "reeve", user, pass, token, credsFile, tls, timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  const login: ConnectionOptions = {};
  if (user !== undefined) login.user = user;
  if (pass !== undefined) login.pass = pass;
  if (token !== undefined) login.token = token;
  if (credsFile !== undefined) login.authenticator = credsAuthenticator(await readFile(credsFile));
  if (tls !== undefined) login.tls = natsTls(tls, servers);
  try {
    return await connect({
      ...login,
      servers: [...servers],
      name,
      timeout: timeoutMs,
      // A dead server is noticed within 6 s instead of the default 4 minutes.
      pingInterval: 2_000,
      maxPingOut: 2,
      maxReconnectAttempts: -1,
      reconnectTimeWait: 250,
      reconnectJitter: 500,
      reconnectJitterTLS: 500,
      // A login that fails for a while, as when a secret is replaced, must not end the connection for good.
      ignoreAuthErrorAbort: true,
    });
  } catch (e: unknown) {
    throw busNotReady(`cannot connect to NATS at ${servers.join(", ")}: ${messageOf(e)}`, e);
  }
}

/** Follows whether a connection is up, from now until it is closed. */
export function watchConnection(nc: NatsConnection, logger: EventLogger): ConnectionWatch {
  const downListeners = new Set<() => void>();
  let up = Promise.withResolvers<void>();
  let isUp = true;
  up.resolve();

  function goDown(): void {
    if (isUp) up = Promise.withResolvers<void>();
    isUp = false;
    for (const listener of downListeners) listener();
  }

  function goUp(): void {
    isUp = true;
    up.resolve();
  }

  async function follow(): Promise<void> {
    for await (const { type } of nc.status()) {
      if (type === Events.Reconnect) goUp();
      if (type !== Events.Disconnect) continue;
      logger.warn({}, "the connection to NATS is down; reconnecting");
      goDown();
    }
  }

  void follow();
  void nc.closed().then(() => {
    goDown();
    up.resolve();
  });
  return {
    isUp: () => isUp,
    isClosed: () => nc.isClosed(),
    whenUp: () => up.promise,
    onDown(listener) {
      downListeners.add(listener);
      return () => downListeners.delete(listener);
    },
  };
}

/**
 * Starts a request in the caller's own turn, and rejects as soon as the connection breaks: the package itself
 * would let it wait for its time limit.
 */
export async function whileUp<R>(watch: ConnectionWatch, request: () => Promise<R>): Promise<R> {
  if (!watch.isUp()) throw busNotReady("the connection to NATS is down");
  const down = Promise.withResolvers<never>();
  const stopListening = watch.onDown(() => down.reject(busNotReady("the connection to NATS broke")));
  try {
    return await Promise.race([request(), down.promise]);
  } finally {
    stopListening();
  }
}

/** An error in words. */
export function messageOf(e: unknown): string {
  return e instanceof Error ? e.message : String(e);
}
