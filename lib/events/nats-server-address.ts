import { connect, isIP } from "node:net";
import { checkServerIdentity, type PeerCertificate } from "node:tls";
import type { ConnectionOptions } from "nats";

const DEFAULT_PORT = 4222;

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

/**
 * Whether any of the servers sends something as soon as a client connects, as every NATS server does: distinguishes one
 * that refuses us without a word from one that cannot be reached.
 */
export async function anyAnswers(servers: readonly string[], withinMs: number): Promise<boolean> {
  const answers = await Promise.all(servers.map((server) => answersAt(addressOf(server), withinMs)));
  return answers.includes(true);
}

/** Host and port of a server such as "nats://nats.example" or "[::1]:4222". */
function addressOf(server: string): { host: string; port: number } {
  const url = URL.parse(server.includes("://") ? server : `nats://${server}`);
  return { host: url?.hostname.replace(/^\[|\]$/g, "") ?? "", port: Number(url?.port || DEFAULT_PORT) };
}

function answersAt(address: { host: string; port: number }, withinMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(address);
    const end = (answers: boolean) => () => {
      socket.destroy();
      resolve(answers);
    };
    socket.setTimeout(withinMs, end(false));
    socket.once("data", end(true)).on("error", end(false)).once("close", end(false));
  });
}
