import { chmod, lstat, rm } from "node:fs/promises";
import * as http from "node:http";
import * as http2 from "node:http2";
import * as https from "node:https";
import type { ListenOptions } from "node:net";
import type { SecureContextOptions, TlsOptions } from "node:tls";
import { isLoopback } from "../config/loopback.ts";
import { invalidField } from "../fault/invalid-input.ts";
import type { TlsSource } from "../identity/tls-source.ts";
import { H2_SESSION_MEGABYTES } from "../wire/connection-limits.ts";
import type { NodeHandler } from "./adapter.ts";
import type { Limits } from "./limits.ts";

/** Bytes in flight at a time. The default of 64 KiB stalls a large message for a round trip each 64 KiB. */
const STREAM_WINDOW = 1024 * 1024;
const CONNECTION_WINDOW = 8 * STREAM_WINDOW;

/** The server for HTTP/1.1, which is the one that listens, with its limits. With `tls` it shakes hands for both versions. */
export function createH1(handler: NodeHandler, limits: Limits, tls: TlsSource | undefined): http.Server {
  const options = http1Options(limits);
  return tls === undefined ? http.createServer(options, handler) : createSecureH1(handler, options, limits, tls);
}

/** The server for HTTP/2, which gets its connections handed over. */
export function createH2(handler: NodeHandler, limits: Limits): http2.Http2Server {
  const h2 = http2.createServer(http2Options(limits), handler);
  h2.on("session", (session) => session.setLocalWindowSize(CONNECTION_WINDOW));
  return h2;
}

/**
 * A client is asked for its certificate and never refused in the handshake: it would learn no more than an alert's
 * number, and its operator nothing. The gate refuses it, with a reason.
 */
function createSecureH1(
  handler: NodeHandler,
  options: http.ServerOptions,
  limits: Limits,
  tls: TlsSource,
): https.Server {
  const handshake: TlsOptions = {
    requestCert: true,
    rejectUnauthorized: false,
    ALPNProtocols: ["h2", "http/1.1"],
    handshakeTimeout: limits.sniffTimeoutMs,
  };
  const server = https.createServer({ ...options, ...handshake, ...secureContext(tls) }, handler);
  // New connections get the new certificate; those that are open go on.
  const stop = tls.onChange(() => server.setSecureContext(secureContext(tls)));
  server.once("close", stop);
  return server;
}

function secureContext(tls: TlsSource): SecureContextOptions {
  const { cert, key, ca } = tls.current();
  return { cert, key, ca, minVersion: "TLSv1.3" };
}

function http1Options(limits: Limits): http.ServerOptions {
  return {
    maxHeaderSize: limits.maxHeaderBytes,
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    // node looks for connections that are over time only this often.
    connectionsCheckingInterval: Math.min(1000, limits.headersTimeoutMs),
  };
}

function http2Options(limits: Limits): http2.ServerOptions {
  return {
    maxSessionMemory: H2_SESSION_MEGABYTES,
    settings: {
      maxConcurrentStreams: limits.maxConcurrentStreams,
      maxHeaderListSize: limits.maxHeaderBytes,
      initialWindowSize: STREAM_WINDOW,
    },
  };
}

/**
 * Throws INVALID_INPUT for a host other than loopback unless it is allowed: tokens would cross the network in cleartext.
 */
export function assertCleartextAllowed(host: string, isAllowed: boolean): void {
  if (isAllowed || isLoopback(host)) return;
  const message =
    `refusing to listen on ${host} in cleartext, where others could read tokens off the network; ` +
    "set a certificate for TLS, listen on 127.0.0.1, or allow plaintext where something else encrypts the way";
  throw invalidField("host", "loopback", message, { text: message });
}

/**
 * Connections that wait to be taken; the system may allow fewer. After an outage all devices dial within a second, and what
 * does not find a place here is not noticed until TCP sends again.
 */
const BACKLOG = 4096;

/** Resolves when the server listens; rejects with node's own error where it cannot. */
export function listen(server: http.Server, where: ListenOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ ...where, backlog: BACKLOG }, () => {
      server.off("error", reject);
      resolve();
    });
  });
}

/**
 * Listens on a Unix socket, mode 0600. What an earlier process left there is taken away first, but nothing that is no
 * socket; node removes the socket when the server closes.
 */
export async function listenOnSocket(server: http.Server, path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined);
  if (found?.isSocket()) await rm(path);
  await listen(server, { path });
  await chmod(path, 0o600);
}
