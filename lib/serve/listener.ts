import * as http from "node:http";
import * as http2 from "node:http2";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../fault/fault.ts";
import type { NodeHandler } from "./adapter.ts";
import { H2_SESSION_MEGABYTES, type Limits } from "./limits.ts";

/** Bytes on the way at a time. The default of 64 KiB stalls a large message for a round trip each 64 KiB. */
const STREAM_WINDOW = 1024 * 1024;
const CONNECTION_WINDOW = 8 * STREAM_WINDOW;

/** The two servers behind a port that speaks both versions of HTTP, with their limits. Neither listens yet. */
export function createListeners(handler: NodeHandler, limits: Limits): { h1: http.Server; h2: http2.Http2Server } {
  const h1 = http.createServer(http1Options(limits), handler);
  h1.maxConnections = limits.maxConnections;
  const h2 = http2.createServer(http2Options(limits), handler);
  h2.on("session", (session) => session.setLocalWindowSize(CONNECTION_WINDOW));
  return { h1, h2 };
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
  if (isAllowed || host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host)) return;
  const message =
    `refusing to listen on ${host} in cleartext, where others could read tokens off the network; ` +
    "listen on 127.0.0.1, or allow plaintext where something else encrypts the way (a mesh, a tunnel, a proxy)";
  throw fault(
    ErrorReason.INVALID_INPUT,
    { field: "host", rule: "loopback" },
    { message, violations: [{ field: "host", message }] },
  );
}

/** Resolves when the server listens; rejects with node's own error where it cannot. */
export function listen(server: http.Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.off("error", reject);
      resolve();
    });
  });
}
