import type { ClientHttp2Stream, Http2Session } from "node:http2";
import { connect as connectTcp, type Socket } from "node:net";
import { Code, ConnectError } from "@connectrpc/connect";
import { Http2SessionManager } from "@connectrpc/connect-node";
import { H2_SESSION_MEGABYTES } from "../wire/connection-limits.ts";
import { type Pings, pingsOf } from "../wire/pings.ts";
import { connectWithin } from "./connect-timeout.ts";
import { type ClientTlsOptions, connectTls } from "./tls.ts";

/** How the HTTP/2 connections of a client are kept. Times are milliseconds. */
export interface SessionOptions extends ClientTlsOptions {
  baseUrl: string;
  pingIntervalMs: number;
  pingTimeoutMs: number;
  connectTimeoutMs: number;
  /** A Unix socket to connect to in place of the address. */
  socketPath?: string | undefined;
}

/** The HTTP/2 connection to one server, made anew when it is needed. */
export type Session = Pick<Http2SessionManager, "authority" | "request" | "notifyResponseByteRead"> & {
  /** Resolves when the connection is established and alive. Rejects where it cannot be. */
  connect(): Promise<void>;
  /** Those of the connection on which the last stream was opened. Nothing happens before there is one. */
  readonly pings: Pings;
  /** Ends the connection and all calls on it. */
  close(): void;
};

interface Generation {
  manager: Http2SessionManager;
  streams: number;
  /** Resolves when the connection is established and alive. Rejects where it cannot be. */
  prepare(): Promise<void>;
}

/**
 * One connection at a time. When the certificate changes, new calls go to a new connection that shows the new one; the
 * old connection ends with its last call, because a server takes no calls from a certificate that has expired.
 */
export function createSession(options: SessionOptions): Session {
  const retired = new Set<Generation>();
  let current = createGeneration(options);
  let newest: Http2Session | undefined;
  const endIfDone = (generation: Generation): void => {
    if (generation === current || generation.streams > 0) return;
    retired.delete(generation);
    abort(generation.manager);
  };
  const stopListening = options.tls?.onChange(() => {
    const old = current;
    current = createGeneration(options);
    retired.add(old);
    endIfDone(old);
  });
  return {
    authority: current.manager.authority,
    connect: () => current.prepare(),
    pings: pingsOf(() => newest),
    async request(method, path, headers, requestOptions) {
      const generation = current;
      generation.streams++; // from now on, so that a change meanwhile does not end the connection under it
      const done = (): void => {
        generation.streams--;
        endIfDone(generation);
      };
      try {
        await generation.prepare();
        const stream = await generation.manager.request(method, path, headers, requestOptions);
        survive(stream.session);
        newest = stream.session;
        stream.once("close", done);
        return stream;
      } catch (error: unknown) {
        done();
        throw error;
      }
    },
    notifyResponseByteRead(stream: ClientHttp2Stream) {
      for (const { manager } of [current, ...retired]) manager.notifyResponseByteRead(stream);
    },
    close() {
      stopListening?.();
      for (const { manager } of [current, ...retired]) abort(manager);
      retired.clear();
    },
  };
}

/**
 * All who want the connection wait together while it is made, or checked for liveness. A manager that finds it dead while
 * others wait for the next one forgets both: they would wait for ever, and what becomes of theirs would end the process.
 */
function createGeneration(options: SessionOptions): Generation {
  const manager = createManager(options);
  let preparing: Promise<void> | undefined;
  const connect = async (): Promise<void> => {
    if ((await manager.connect()) === "error") throw noSocket(manager.error()) ?? manager.error() ?? connectionClosed();
  };
  return {
    manager,
    streams: 0,
    prepare() {
      preparing ??= connect().finally(() => {
        preparing = undefined;
      });
      return preparing;
    },
  };
}

/**
 * With a reason of our own: a manager that is aborted without one in the moment of its connection turns round and round for
 * ever in its wait for that connection, and holds the whole process.
 */
function abort(manager: Http2SessionManager): void {
  manager.abort(connectionClosed());
}

/** Connect takes a missing socket for an internal error: with a port, nothing would be listening. */
function noSocket(error: unknown): ConnectError | undefined {
  const cause = error instanceof ConnectError ? error.cause : error;
  const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
  if (code !== "ENOENT" && code !== "EACCES") return undefined;
  return new ConnectError(cause instanceof Error ? cause.message : code, Code.Unavailable, undefined, undefined, cause);
}

function connectionClosed(): ConnectError {
  return new ConnectError("the connection was closed", Code.Unavailable);
}

const surviving = new WeakSet<Http2Session>();

/**
 * Keeps a connection's error from ending the process: one that did not answer a ping is destroyed at once and says so
 * later, and a manager that is aborted in between has stopped listening by then. Its streams have failed anyway.
 */
function survive(session: Http2Session | undefined): void {
  if (session === undefined || surviving.has(session)) return;
  surviving.add(session);
  session.on("error", () => undefined);
}

function createManager(options: SessionOptions): Http2SessionManager {
  const { baseUrl, socketPath, pingIntervalMs, pingTimeoutMs, connectTimeoutMs } = options;
  const url = new URL(baseUrl);
  const connect = (): Socket =>
    url.protocol === "https:"
      ? connectWithin(connectTls(url, options, ["h2"]), "secureConnect", connectTimeoutMs)
      : connectWithin(
          connectTcp(socketPath === undefined ? addressOf(url) : { path: socketPath }),
          "connect",
          connectTimeoutMs,
        );
  return new Http2SessionManager(
    baseUrl,
    { pingIntervalMs, pingTimeoutMs },
    {
      maxSessionMemory: H2_SESSION_MEGABYTES,
      settings: { initialWindowSize: 1024 * 1024 },
      createConnection: connect,
    },
  );
}

function addressOf({ hostname, port }: URL): { host: string; port: number } {
  return { host: hostname.replace(/^\[|\]$/g, ""), port: Number(port || 80) };
}
