import { READ_MAX_BYTES } from "../wire/connection-limits.ts";

/** What a server takes from callers before it says no. Times are milliseconds. */
export interface Limits {
  /** Bytes of one request message. Default 4 MiB. */
  readMaxBytes: number;
  /** The longest deadline a caller may ask for; a longer one is refused. Default one hour. */
  maxTimeoutMs: number;
  /** From a connection's first byte to its protocol being clear; with TLS, to the end of the handshake. Default 10 s. */
  sniffTimeoutMs: number;
  /** From an HTTP/1.1 request's first byte to the end of its headers. Default 10 s. */
  headersTimeoutMs: number;
  /**
   * From a request's first byte to the end of its body. Does not count for RPCs that need authentication and whose request
   * is a stream over HTTP/2. Default 60 s.
   */
  requestTimeoutMs: number;
  /** How long an HTTP/1.1 connection may wait for its next request. Default 65 s. */
  keepAliveTimeoutMs: number;
  /** Bytes of one request's headers. Default 16 KiB. */
  maxHeaderBytes: number;
  /**
   * Connections at a time. Default 10 000: each device holds one or two. Those on which nothing was authenticated have three
   * quarters of it, and any one of them is closed for each one more.
   */
  maxConnections: number;
  /**
   * Connections of one remote address on which nothing was authenticated; any one is closed for each one more. An IPv6
   * address counts as its /64 network. Default 2000: so many devices may dial at once from behind one address.
   */
  connectionsPerAddress: number;
  /** HTTP/2 streams at a time on one connection. Default 512. */
  maxConcurrentStreams: number;
  /** Bytes of a public RPC's request in all. Default 64 KiB. */
  publicMaxBytes: number;
  /** Public RPCs at a time on one connection on which nothing was authenticated. Default 8. */
  publicCallsPerConnection: number;
  /** The same for all connections of one remote address. Default 256. */
  publicCallsPerAddress: number;
  /** The same for all connections of the server. Default 1024. */
  maxPublicCalls: number;
  /** Streams of grpc.health.v1.Health/Watch at a time, for all callers. Default 64. */
  maxHealthWatches: number;
  /** An HTTP/2 connection is pinged this often. Default 20 s. */
  pingIntervalMs: number;
  /** An HTTP/2 connection that does not answer for so long is closed. Default 10 s. */
  pingTimeoutMs: number;
  /** An HTTP/2 connection without a stream for so long gets a GOAWAY. Default 20 minutes. */
  idleSessionMs: number;
  /** Objects and arrays within each other in a JSON request. Default 32. */
  maxJsonDepth: number;
  /** Keys in a JSON request. Default 1000. */
  maxJsonKeys: number;
}

/** The limits where none are given. */
export const defaultLimits: Readonly<Limits> = Object.freeze({
  readMaxBytes: READ_MAX_BYTES,
  maxTimeoutMs: 3_600_000,
  sniffTimeoutMs: 10_000,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 60_000,
  keepAliveTimeoutMs: 65_000,
  maxHeaderBytes: 16 * 1024,
  maxConnections: 10_000,
  connectionsPerAddress: 2_000,
  maxConcurrentStreams: 512,
  publicMaxBytes: 64 * 1024,
  publicCallsPerConnection: 8,
  publicCallsPerAddress: 256,
  maxPublicCalls: 1024,
  maxHealthWatches: 64,
  pingIntervalMs: 20_000,
  pingTimeoutMs: 10_000,
  idleSessionMs: 20 * 60_000,
  maxJsonDepth: 32,
  maxJsonKeys: 1000,
});
