import { isIP } from "node:net";
import { checkServerIdentity, type PeerCertificate } from "node:tls";
import type { ConnectionOptions } from "nats";
import { addressOf } from "./nats-reach.ts";

/** What node takes for the host where the package `nats` names none, as it does for every IP address. */
const UNNAMED = "localhost";

/**
 * TLS options for the package `nats`. It has a server's certificate checked for "localhost" where the server's address is
 * an IP address; with these, such a certificate must be for one of the addresses that are configured.
 */
export function natsTls<Tls extends object>(
  tls: Tls,
  servers: readonly string[],
): NonNullable<ConnectionOptions["tls"]> {
  const unnamed = servers
    .map((server) => addressOf(server).host)
    .filter((host) => isIP(host) !== 0 || host === UNNAMED);
  const check = (host: string, certificate: PeerCertificate): Error | undefined => {
    const hosts = host === UNNAMED && unnamed.length > 0 ? unnamed : [host];
    const ends = hosts.map((one) => checkServerIdentity(one, certificate));
    return ends.includes(undefined) ? undefined : ends[0];
  };
  return { ...tls, checkServerIdentity: check } as NonNullable<ConnectionOptions["tls"]>;
}
