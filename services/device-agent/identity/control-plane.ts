import { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { connect, type DetailedPeerCertificate, type TLSSocket } from "node:tls";
import { identityRefused } from "../../../lib/auth/peer.ts";
import { authorityId } from "../../../lib/identity/authority.ts";

/** How long a server has to show its certificate, in milliseconds. */
const TIMEOUT_MS = 10_000;

/**
 * Asks a server for its certificates, trusting nothing, and returns the authority among them whose key has this digest,
 * PEM. Nothing is sent to the server before that. Whether the authority has really signed the server's certificate is
 * checked by the connections that trust it. Rejects with IDENTITY_REFUSED where the server shows no such authority, and
 * with node's error where it is not reached.
 */
export async function findAuthority(url: string, digest: string): Promise<string> {
  for (const certificate of await shownBy(new URL(url))) {
    if (certificate.ca && authorityId(certificate.toString()) === digest) return certificate.toString();
  }
  const message = `${url} is not the control plane that this token is for: nothing was sent to it. There may be an attacker in between; ask for a new token where this is not the reason`;
  throw identityRefused("foreign", undefined, { message });
}

function shownBy(url: URL): Promise<X509Certificate[]> {
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const { promise, resolve, reject } = Promise.withResolvers<X509Certificate[]>();
  const socket: TLSSocket = connect({
    host,
    port: Number(url.port || 443),
    ...(isIP(host) === 0 && { servername: host }),
    ALPNProtocols: ["h2", "http/1.1"],
    minVersion: "TLSv1.3",
    // Looked at, not trusted.
    rejectUnauthorized: false,
  });
  socket.once("secureConnect", () => resolve(chainOf(socket.getPeerCertificate(true))));
  // Not once: a socket that fails again while it is given up must not end the process.
  socket.on("error", reject);
  socket.setTimeout(TIMEOUT_MS, () => reject(new Error(`${url.origin} does not answer`)));
  return promise.finally(() => socket.destroy());
}

function chainOf(shown: DetailedPeerCertificate): X509Certificate[] {
  const chain: X509Certificate[] = [];
  let next: DetailedPeerCertificate | undefined = shown;
  const seen = new Set<string>();
  while (next?.raw !== undefined && !seen.has(next.fingerprint256)) {
    seen.add(next.fingerprint256);
    chain.push(new X509Certificate(next.raw));
    next = next.issuerCertificate;
  }
  return chain;
}
