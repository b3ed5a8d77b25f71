import type { Interceptor, Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { READ_MAX_BYTES } from "../wire/connection-limits.ts";
import type { Pings } from "../wire/pings.ts";
import { createSession } from "./session.ts";
import { type ClientTlsOptions, createTlsAgent, identityInterceptor, refusedServer } from "./tls.ts";
import { createDirectUnary } from "./unary/direct-unary.ts";

export interface ServiceTransportOptions extends ClientTlsOptions {
  /** Such as "https://127.0.0.1:7400"; http is cleartext. */
  baseUrl: string;
  /** A Unix socket to connect to, over HTTP/2; `baseUrl` is then a cleartext one, and only a name. Default: the address. */
  socketPath?: string | undefined;
  /** Sent as a bearer token. Default: none. */
  token?: string;
  /** Default "connect". */
  protocol?: "connect" | "grpc";
  /** Default "2": HTTP/2, in cleartext with prior knowledge, many calls on one connection. "1.1" is for Connect only. */
  httpVersion?: "1.1" | "2";
  /** Bytes of one answer. Default 4 MiB. */
  readMaxBytes?: number;
  /** For calls that set none. Default: no deadline. */
  defaultTimeoutMs?: number;
  /** A connection with open calls is pinged this often. Default 10 s. */
  pingIntervalMs?: number;
  /** And given up after so long without an answer. Default 5 s. */
  pingTimeoutMs?: number;
  /** How long connecting may take, with TLS until the end of the handshake. Default 10 s. */
  connectTimeoutMs?: number;
}

/** For a transport that a link with pings of its own has to itself: others would come twice as often, and say no more. */
export const LINK_PINGS_MS = 60_000;

/** A transport that can be closed. It reconnects by itself and does not keep the process alive while idle. */
export interface ServiceTransport extends Transport {
  /**
   * Connects before there is a call, and resolves when the server is connected, over TLS with the identity that it must have. Rejects with what a
   * call would fail with, such as IDENTITY_REFUSED. HTTP/1.1 has a connection for each call: it resolves at once.
   */
  connect(): Promise<void>;
  /** Those of the connection of the last call, for a transport that one stream has to itself; undefined over HTTP/1.1. */
  readonly pings: Pings | undefined;
  /** Ends the connection and all calls on it. */
  close(): void;
}

/**
 * A transport to a server of `createServer`, without compression. Over TLS the server's certificate is verified, and calls
 * fail with IDENTITY_REFUSED where it is not the expected one's; a certificate that is replaced is shown from the next call
 * on. Throws a TypeError for a combination that cannot be, such as a certificate for a cleartext address.
 */
export function createServiceTransport(options: ServiceTransportOptions): ServiceTransport {
  const { baseUrl, token, protocol = "connect", httpVersion = "2" } = options;
  if (protocol === "grpc" && httpVersion === "1.1") throw new TypeError("gRPC needs HTTP/2");
  const isSecure = new URL(baseUrl).protocol === "https:";
  if (!isSecure && (options.tls ?? options.serverName) !== undefined)
    throw new TypeError(`${baseUrl} is cleartext, where no peer shows a certificate: use an https address`);
  if (options.socketPath !== undefined && (isSecure || httpVersion === "1.1"))
    throw new TypeError("a Unix socket is dialed in cleartext, over HTTP/2");
  const common = {
    baseUrl,
    interceptors: [
      ...(isSecure ? [identityInterceptor] : []),
      ...(token === undefined ? [] : [bearerInterceptor(token)]),
    ],
    acceptCompression: [],
    readMaxBytes: options.readMaxBytes ?? READ_MAX_BYTES,
    ...(options.defaultTimeoutMs !== undefined && { defaultTimeoutMs: options.defaultTimeoutMs }),
  };
  if (httpVersion === "1.1") {
    const connect = () => Promise.resolve();
    if (!isSecure)
      return serviceTransport(createConnectTransport({ ...common, httpVersion }), connect, { close: () => undefined });
    const { agent, close } = createTlsAgent(options);
    return serviceTransport(createConnectTransport({ ...common, httpVersion, nodeOptions: { agent } }), connect, {
      close,
    });
  }
  const { pingIntervalMs = 10_000, pingTimeoutMs = 5_000, connectTimeoutMs = 10_000 } = options;
  const sessionManager = createSession({ ...options, pingIntervalMs, pingTimeoutMs, connectTimeoutMs });
  const whole = { ...common, httpVersion, sessionManager };
  const explain = (error: unknown): unknown => refusedServer(error) ?? error;
  const connect = () =>
    sessionManager.connect().catch((error: unknown) => {
      throw explain(error);
    });
  if (protocol === "grpc") return serviceTransport(createGrpcTransport(whole), connect, sessionManager);
  const headers: Record<string, string> = token === undefined ? {} : { authorization: bearer(token) };
  const unary = createDirectUnary({ ...common, streams: sessionManager, headers, explain });
  return serviceTransport({ ...createConnectTransport(whole), unary }, connect, sessionManager);
}

function serviceTransport(
  transport: Transport,
  connect: () => Promise<void>,
  { pings, close }: { pings?: Pings; close(): void },
): ServiceTransport {
  const stream: Transport["stream"] = (...request) => {
    const response = transport.stream(...request);
    // Connect's clients wait for it when the first message is asked for. One that fails before would end the process.
    response.catch(() => undefined);
    return response;
  };
  return { unary: transport.unary.bind(transport), stream, connect, pings, close };
}

function bearer(token: string): string {
  return `Bearer ${token}`;
}

function bearerInterceptor(token: string): Interceptor {
  const value = bearer(token);
  return (next) => (request) => {
    if (!request.header.has("authorization")) request.header.set("authorization", value);
    return next(request);
  };
}
