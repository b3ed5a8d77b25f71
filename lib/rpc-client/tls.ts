import { X509Certificate } from "node:crypto";
import { Agent } from "node:https";
import { isIP, type Socket } from "node:net";
import {
  type ConnectionOptions,
  connect,
  createSecureContext,
  type PeerCertificate,
  type SecureContext,
} from "node:tls";
import { ConnectError, type Interceptor } from "@connectrpc/connect";
import { identityRefused, problemOf } from "../auth/peer.ts";
import { faultDetail } from "../fault/fault.ts";
import { formatIdentity, type Identity, identityOf, isSameIdentity } from "../identity/spiffe.ts";
import type { TlsSource } from "../identity/tls-source.ts";

/** Who a server must be: exactly one service or device, or any device of a trust domain. */
export type ExpectedServer = Identity | { readonly kind: "device"; readonly trustDomain: string };

/** Whom a client trusts, and as whom it comes. */
export interface ClientTlsOptions {
  /** Shown to the server, whose certificate must come from its authorities. */
  tls?: TlsSource | undefined;
  /** Authorities in PEM form, for a client without a certificate. Default: those of the system. */
  ca?: string | undefined;
  /**
   * Who the server must be by its certificate, whatever its address is: any replica of policy is policy. Default: the
   * certificate must be for the address's host.
   */
  serverName?: ExpectedServer | undefined;
}

/** Opens a TLS connection with the material of this moment. */
export function connectTls(url: URL, options: ClientTlsOptions, protocols: readonly string[]): Socket {
  const host = url.hostname.replace(/^\[|\]$/g, "");
  return connect({
    host,
    port: Number(url.port || 443),
    ALPNProtocols: [...protocols],
    ...(isIP(host) === 0 && { servername: host }), // TLS has no field for an IP address
    ...secureOptions(options),
  });
}

/** Connections for HTTP/1.1, each new one with the material of its moment. */
export function createTlsAgent(options: ClientTlsOptions): { agent: Agent; close(): void } {
  // A resumed session would skip the check of the server's name.
  const agent = new Agent({ keepAlive: true, maxCachedSessions: 0 });
  // A connection that shows an old certificate ends with its request, so that no later one is sent on it.
  let current = new WeakSet<object>();
  agent.createConnection = ({ host, port }) => {
    const url = new URL(`https://${isIP(host ?? "") === 6 ? `[${host}]` : host}:${port}`);
    const socket = connectTls(url, options, ["http/1.1"]);
    current.add(socket);
    return socket;
  };
  const keep = agent.keepSocketAlive.bind(agent);
  agent.keepSocketAlive = (socket) => current.has(socket) && keep(socket);
  const stopListening = options.tls?.onChange(() => {
    current = new WeakSet();
    for (const idle of Object.values(agent.freeSockets).flat()) idle?.destroy();
  });
  const close = (): void => {
    stopListening?.();
    agent.destroy();
  };
  return { agent, close };
}

function secureOptions(options: ClientTlsOptions): ConnectionOptions {
  const { serverName } = options;
  return {
    secureContext: contextOf(options),
    ...(serverName !== undefined && {
      checkServerIdentity: (_host: string, { raw }: PeerCertificate) => checkServer(serverName, raw),
    }),
  };
}

/** By what they were made of, which is never changed but replaced. */
const contexts = new WeakMap<object, SecureContext>();

/** To read keys and authorities takes longer than all else about a connection, so it is done once for all of them. */
function contextOf(options: ClientTlsOptions): SecureContext {
  const material = options.tls?.current();
  const owner = material ?? options;
  const known = contexts.get(owner);
  if (known !== undefined) return known;
  const { ca } = options;
  const parts = material ?? (ca === undefined ? {} : { ca });
  const context = createSecureContext({ ...parts, minVersion: "TLSv1.3" });
  contexts.set(owner, context);
  return context;
}

/** Undefined where the certificate is the expected one's. Its chain was verified before. */
function checkServer(expected: ExpectedServer, raw: Uint8Array): Error | undefined {
  const shown = identityOf(new X509Certificate(raw));
  if (shown === undefined)
    return identityRefused("malformed", undefined, { message: "the server's certificate names no identity" });
  if (isExpected(shown, expected)) return undefined;
  const why = shown.trustDomain === expected.trustDomain ? "role" : "foreign";
  const name = isAnyDevice(expected) ? "a device" : formatIdentity(expected);
  return identityRefused(why, shown, { message: `the server is not ${name}` });
}

function isExpected(shown: Identity, expected: ExpectedServer): boolean {
  if (!isAnyDevice(expected)) return isSameIdentity(shown, expected);
  return shown.kind === "device" && shown.trustDomain === expected.trustDomain;
}

function isAnyDevice(expected: ExpectedServer): expected is Exclude<ExpectedServer, Identity> {
  return !("id" in expected || "name" in expected);
}

/** What OpenSSL and node call a server's certificate that does not verify. */
const VERIFY_CODES =
  /^(CERT_|UNABLE_TO_|DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT|INVALID_(CA|PURPOSE)|ERR_TLS_CERT_ALTNAME)/;

/** Gives a connection that ended over the server's certificate the reason IDENTITY_REFUSED. */
export const identityInterceptor: Interceptor = (next) => async (request) => {
  try {
    return await next(request);
  } catch (error: unknown) {
    throw refusedServer(error) ?? error;
  }
};

/** The error IDENTITY_REFUSED where a connection ended over the server's certificate; undefined for any other end. */
export function refusedServer(error: unknown): ConnectError | undefined {
  if (faultDetail(error) !== undefined || !(error instanceof ConnectError)) return undefined;
  const { cause } = error;
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
  if (!VERIFY_CODES.test(code)) return undefined;
  const isOtherHost = code === "ERR_TLS_CERT_ALTNAME_INVALID";
  const message = `the server's certificate is refused: ${cause instanceof Error ? cause.message : code}`;
  return identityRefused(isOtherHost ? "role" : problemOf(code), undefined, { message, cause });
}
