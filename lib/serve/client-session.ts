import type { ClientHttp2Stream, Http2Session } from "node:http2";
import { Http2SessionManager } from "@connectrpc/connect-node";
import { type ClientTlsOptions, connectTls } from "./client-tls.ts";
import { H2_SESSION_MEGABYTES } from "./limits.ts";

/** How the HTTP/2 connections of a client are kept. Times are milliseconds. */
export interface SessionOptions extends ClientTlsOptions {
  baseUrl: string;
  pingIntervalMs: number;
  pingTimeoutMs: number;
}

/** The HTTP/2 connection to one server, made anew when it is needed. */
export type Session = Pick<Http2SessionManager, "authority" | "request" | "notifyResponseByteRead"> & {
  /** Ends the connection and all calls on it. */
  close(): void;
};

interface Generation {
  manager: Http2SessionManager;
  streams: number;
}

/**
 * One connection at a time. When the certificate changes, new calls go to a new connection that shows the new one; the
 * old connection ends with its last call, because a server takes no calls from a certificate that has expired.
 */
export function createSession(options: SessionOptions): Session {
  const retired = new Set<Generation>();
  let current: Generation = { manager: createManager(options), streams: 0 };
  const endIfDone = (generation: Generation): void => {
    if (generation === current || generation.streams > 0) return;
    retired.delete(generation);
    generation.manager.abort();
  };
  const stopListening = options.tls?.onChange(() => {
    const old = current;
    current = { manager: createManager(options), streams: 0 };
    retired.add(old);
    endIfDone(old);
  });
  return {
    authority: current.manager.authority,
    async request(method, path, headers, requestOptions) {
      const generation = current;
      generation.streams++; // from now on, so that a change meanwhile does not end the connection under it
      const done = (): void => {
        generation.streams--;
        endIfDone(generation);
      };
      try {
        const stream = await generation.manager.request(method, path, headers, requestOptions);
        survive(stream.session);
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
      for (const { manager } of [current, ...retired]) manager.abort();
      retired.clear();
    },
  };
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
  const { baseUrl, pingIntervalMs, pingTimeoutMs } = options;
  const url = new URL(baseUrl);
  return new Http2SessionManager(
    baseUrl,
    { pingIntervalMs, pingTimeoutMs },
    {
      maxSessionMemory: H2_SESSION_MEGABYTES,
      settings: { initialWindowSize: 1024 * 1024 },
      ...(url.protocol === "https:" && { createConnection: () => connectTls(url, options, ["h2"]) }),
    },
  );
}
