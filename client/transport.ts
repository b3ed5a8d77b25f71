import { readFileSync } from "node:fs";
import type { Interceptor, Transport } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { callHeaders } from "./metadata.ts";

/** How a transport is made. */
export interface ReeveTransportOptions {
  /** Where the registry listens, such as "https://reeve.example:7400". Cleartext http is for loopback. */
  url: string;
  /** Sent as a bearer token. */
  token: string;
  /** The device for typed calls that name none. May be left out where there is only one. */
  device?: string;
  /** The certificate authority of the control plane, in PEM. Default: those that Node trusts. */
  ca?: string;
  /** A file with it. */
  caFile?: string;
  /** The deadline of calls that set none, in milliseconds: held calls wait for their human that long. Default: none. */
  timeoutMs?: number;
}

/** A transport that can be closed. It connects by itself, again where it has to, and keeps no process alive while idle. */
export interface ReeveTransport extends Transport {
  /** Ends the connection and the calls on it. What they run goes on. */
  close(): void;
}

/**
 * A transport to a control plane, over gRPC. Use it with `createClient` and any service of this module. Throws where a
 * file cannot be read, or where a token would cross a network in cleartext.
 */
export function createReeveTransport(options: ReeveTransportOptions): ReeveTransport {
  const { token, device, timeoutMs } = options;
  const url = new URL(options.url);
  if (url.protocol !== "https:" && !isLoopback(url.hostname)) {
    throw new TypeError(`${options.url}: only loopback may be http, since anyone on the way could read the token`);
  }
  const ca = options.caFile === undefined ? options.ca : readFileSync(options.caFile, "utf8");
  const sessionManager = new Http2SessionManager(url.origin, {}, ca === undefined ? {} : { ca });
  const transport = createGrpcTransport({
    baseUrl: url.href.replace(/\/$/, ""),
    sessionManager,
    interceptors: [
      headers({ authorization: `Bearer ${token}`, ...callHeaders(device === undefined ? {} : { device }) }),
    ],
    ...(timeoutMs !== undefined && { defaultTimeoutMs: timeoutMs }),
  });
  return {
    unary: transport.unary.bind(transport),
    stream: transport.stream.bind(transport),
    close: () => sessionManager.abort(),
  };
}

/** Sets headers that a call does not set itself. */
function headers(values: Readonly<Record<string, string>>): Interceptor {
  return (next) => (request) => {
    for (const [name, value] of Object.entries(values)) {
      if (!request.header.has(name)) request.header.set(name, value);
    }
    return next(request);
  };
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "[::1]" || /^127(\.\d{1,3}){3}$/.test(host);
}
