import type { ServerHttp2Session } from "node:http2";
import { type AddressInfo, isIP } from "node:net";
import { within } from "../async/within.ts";
import type { TlsSource } from "../identity/tls-source.ts";
import type { Logger } from "../log/log.ts";
import type { NodeHandler } from "./adapter.ts";
import { absorbErrors } from "./connection-errors.ts";
import type { Connections } from "./connections.ts";
import { type Drain, prepareDrain } from "./drain.ts";
import type { Limits } from "./limits.ts";
import { createH1, createH2, listen, listenOnSocket } from "./listener.ts";
import { followPeers } from "./peers.ts";
import { serveBoth, serveBothSecurely } from "./sniff.ts";

export interface PortOptions {
  host: string;
  port: number;
  /** A Unix socket in place of host and port. */
  socketPath?: string | undefined;
  handler: NodeHandler;
  /** Gets the port's connections. */
  connections: Connections;
  limits: Limits;
  logger: Logger;
  /** Undefined: cleartext. */
  tls?: TlsSource | undefined;
}

/** A port that speaks HTTP/1.1 and HTTP/2. */
export interface Port {
  /** Such as "https://127.0.0.1:7400", or "unix:/run/reeve/registry.sock". */
  readonly url: string;
  readonly port: number;
  /** Stops taking connections, in two steps. */
  readonly drain: Drain;
}

/** Listens for both versions of HTTP. Rejects with node's own error where the port cannot be had. */
export async function openPort(options: PortOptions): Promise<Port> {
  const { host, port, socketPath, handler, connections, limits, logger, tls } = options;
  const h1 = createH1(handler, limits, tls);
  const h2 = createH2(handler, limits);
  h2.on("session", (session) => keepAlive(session, limits));
  h2.on("sessionError", (error) => logger.debug({ err: error }, "HTTP/2 session failed"));
  h1.on("tlsClientError", (error: Error) => logger.debug({ err: error }, "TLS handshake failed"));
  const undecided = (tls === undefined ? serveBoth : serveBothSecurely)(h1, h2, connections, limits.sniffTimeoutMs);
  h1.on("connection", absorbErrors);
  h1.on("secureConnection", absorbErrors);
  h2.on("session", absorbErrors);
  if (tls !== undefined) followPeers({ h1, h2, tls, logger, onSound: (owner) => connections.owner(owner)?.know() });
  const drain = prepareDrain({ h1, h2, undecided });
  if (socketPath === undefined) await listen(h1, { port, host });
  else await listenOnSocket(h1, socketPath);
  // Such as no more descriptors: the connection is lost, the port goes on.
  h1.on("error", (error) => logger.error({ err: error }, "connection not accepted"));
  if (socketPath !== undefined) return { url: `unix:${socketPath}`, port: 0, drain };
  const bound = (h1.address() as AddressInfo).port;
  const scheme = tls === undefined ? "http" : "https";
  return { url: `${scheme}://${isIP(host) === 6 ? `[${host}]` : host}:${bound}`, port: bound, drain };
}

/** Resolves when the last connection is gone: at the latest `graceMs` and then `lastWordsMs` after the beginning. */
export async function closePort(
  { drain }: Port,
  { graceMs, lastWordsMs, onGraceOver }: { graceMs: number; lastWordsMs: number; onGraceOver: () => void },
): Promise<void> {
  const closed = drain.begin();
  if (await within(closed, graceMs)) return;
  onGraceOver();
  if (await within(closed, lastWordsMs)) return;
  drain.destroy();
  await closed;
}

/**
 * Watches one HTTP/2 connection. A peer that is gone without a word (a pulled cable, a frozen process) does not answer a
 * ping and is cut off, which aborts its handlers; one that has had no stream for long gets a GOAWAY. Where something has come
 * since the last look there is no ping.
 */
function keepAlive(session: ServerHttp2Session, limits: Limits): void {
  let streams = 0;
  let idleSince = performance.now();
  session.on("stream", (stream) => {
    streams++;
    stream.once("close", () => {
      streams--;
      idleSince = performance.now();
    });
  });
  let receivedBytes = 0;
  const timer = setInterval(() => {
    const known = receivedBytes;
    receivedBytes = session.destroyed ? known : session.socket.bytesRead;
    if (streams === 0 && performance.now() - idleSince > limits.idleSessionMs) session.close();
    else if (receivedBytes === known) ping(session, limits.pingTimeoutMs);
  }, limits.pingIntervalMs);
  timer.unref();
  session.once("close", () => clearInterval(timer));
}

function ping(session: ServerHttp2Session, timeoutMs: number): void {
  if (session.closed || session.destroyed) return;
  const timer = setTimeout(() => session.destroy(), timeoutMs);
  timer.unref();
  // The callback comes with an error where the session ends first; either way it is no longer ours to end.
  session.ping(() => clearTimeout(timer));
}
