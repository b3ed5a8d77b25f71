import {
  type Authenticator,
  type ConnectionOptions,
  connect,
  credsAuthenticator,
  type NatsConnection,
  usernamePasswordAuthenticator,
} from "nats";
import { busNotReady, type EventLogger } from "./bus.ts";
import { anyAnswers, natsTls } from "./nats-server-address.ts";

/** How long connecting, and one request, may take unless the options say otherwise, in milliseconds. */
export const DEFAULT_TIMEOUT_MS = 5_000;

/** Where the servers are and how to log in. */
export interface NatsOptions {
  /** Such as "nats://10.0.0.5:4222"; any of a cluster. */
  servers: readonly string[];
  /** Shown in the server's list of connections. Default "reeve". */
  name?: string;
  user?: string;
  /** A function is asked at each login, so that a password can be replaced while the process runs. */
  pass?: string | (() => string);
  /** A user's JWT and seed, as `nsc generate creds` writes them, asked for at each login. */
  creds?: () => string;
  /** Files in PEM form; turns TLS on. */
  tls?: { caFile?: string; certFile?: string; keyFile?: string };
  /** How long connecting, and one request, may take, in milliseconds. Default 5000. */
  timeoutMs?: number;
  logger?: EventLogger;
}

/** No server listens, or one is silent. It may answer later. */
export class NatsUnreachable extends Error {
  override name = "NatsUnreachable";
}

/** The codes of node and of the package `nats` for a server that cannot be reached. */
const UNREACHABLE = new Set([
  "CONNECTION_REFUSED",
  "CONNECTION_CLOSED",
  "DISCONNECT",
  "ECONNREFUSED",
  "ECONNRESET",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ETIMEDOUT",
  "EPIPE",
  "ENOTFOUND",
  "EAI_AGAIN",
]);

/**
 * Connects to NATS; the connection is then made anew whenever it breaks. Rejects NatsUnreachable where no server answers, and
 * ERROR_REASON_NOT_READY where one refuses. Only the files beside this one that begin with "nats-" know the package `nats`.
 */
export async function dialNats(options: NatsOptions): Promise<NatsConnection> {
  const { servers, name = "reeve", tls, timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  const login: ConnectionOptions = { authenticator: authenticatorsOf(options) };
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
    const message = `cannot connect to NATS at ${servers.join(", ")}: ${messageOf(e)}`;
    if (await isUnreachable(e, servers, timeoutMs)) throw new NatsUnreachable(message, { cause: e });
    throw busNotReady(message, e);
  }
}

function authenticatorsOf({ user, pass = "", creds }: NatsOptions): Authenticator[] {
  return [
    ...(user === undefined ? [] : [usernamePasswordAuthenticator(user, pass)]),
    ...(creds === undefined ? [] : [loginWith(creds)]),
  ];
}

/** The package gives a connection up for good where this throws: a file that is half written must not do that. */
function loginWith(creds: () => string): Authenticator {
  let last: Authenticator | undefined;
  return (nonce) => {
    const text = creds();
    const next = credsAuthenticator(() => Buffer.from(text));
    try {
      const auth = next(nonce);
      last = next;
      return auth;
    } catch (error: unknown) {
      if (last === undefined) throw error;
      return last(nonce);
    }
  };
}

async function isUnreachable(error: unknown, servers: readonly string[], timeoutMs: number): Promise<boolean> {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  // The package waits for its time limit, too, where a server hangs up on our certificate.
  return UNREACHABLE.has(code) || (code === "TIMEOUT" && !(await anyAnswers(servers, timeoutMs)));
}

/** An error in words. */
export function messageOf(e: unknown): string {
  return e instanceof Error ? e.message : String(e);
}
