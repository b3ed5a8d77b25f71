import { type BlockList, isIP, isIPv4 } from "node:net";
import { isPublicAddress, networks } from "./public-address.ts";

/** Where the device's owner lets tools connect. */
export interface HostList {
  /** False where nothing is granted. */
  readonly hasHosts: boolean;
  /**
   * Whether a host by this name, or this address, may be asked at a port.
   *
   * @param defaultPort the port of entries that name none.
   */
  grants(host: string, port: number, defaultPort: number): boolean;
  /** Whether a connection may go to this address: it is public, or the owner has named it. */
  mayConnect(address: string): boolean;
}

/** Nowhere. */
export const NO_HOSTS: HostList = parseHosts([]);

const NAME = /^(?:\*\.)?(?=.{1,253}$)[a-z0-9](?:[a-z0-9_-]{0,62})(?:\.[a-z0-9](?:[a-z0-9_-]{0,62}))*$/;

interface Entry {
  host: string;
  port: number | undefined;
}

/**
 * The hosts of a list. An entry is a name, with "*." before it for all names below it, or an IP address, each with ":PORT" where
 * another port than the protocol's own is meant; or a network, such as 10.0.0.0/8. An address or a network is also what makes
 * a connection to an address possible that is not public. Throws an Error that names the entry that is none of these.
 */
export function parseHosts(entries: readonly string[]): HostList {
  const named = entries.filter((entry) => !isNetwork(entry)).map(parseEntry);
  const ranges = networks(entries.filter(isNetwork));
  const addresses = networks(named.map(({ host }) => host).filter((host) => isIP(host) !== 0));
  const isIn = (list: BlockList, address: string) => list.check(address, isIPv4(address) ? "ipv4" : "ipv6");
  return {
    hasHosts: entries.length > 0,
    grants(host, port, defaultPort) {
      const asked = plainHost(host);
      if (named.some((entry) => isMeant(entry, asked) && port === (entry.port ?? defaultPort))) return true;
      return isIP(asked) !== 0 && port === defaultPort && isIn(ranges, asked);
    },
    mayConnect: (address) =>
      isPublicAddress(address) || (!address.includes("%") && [ranges, addresses].some((list) => isIn(list, address))),
  };
}

/** A host as URLs and entries may write it, in one form: lower case, no dot at the end, no brackets. */
export function plainHost(host: string): string {
  const lower = host.toLowerCase();
  if (lower.startsWith("[")) return lower.slice(1, -1);
  return lower.endsWith(".") ? lower.slice(0, -1) : lower;
}

function isMeant({ host }: Entry, asked: string): boolean {
  if (!host.startsWith("*.")) return host === asked;
  return isIP(asked) === 0 && asked.endsWith(host.slice(1)) && asked.length > host.length - 1;
}

function isNetwork(entry: string): boolean {
  const [address = "", bits, ...rest] = entry.split("/");
  const family = isIP(address);
  return family !== 0 && rest.length === 0 && /^\d{1,3}$/.test(bits ?? "") && Number(bits) <= (family === 4 ? 32 : 128);
}

function parseEntry(entry: string): Entry {
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d{1,5}))?$/.exec(entry) ?? [];
  const host = plainHost(bracketed ?? plain ?? entry);
  const isHost = isIP(host) !== 0 || (bracketed === undefined && NAME.test(host));
  if (!isHost || Number(port ?? 1) < 1 || Number(port ?? 1) > 65_535)
    throw new Error(
      `"${entry}" is no host: api.example.com, *.example.com, git.example.com:8443, 10.1.2.3 or 10.0.0.0/8 is expected`,
    );
  // A name that looks like a number is an address in some programs' eyes, and none in ours.
  if (isIP(host) === 0 && /(?:^|\.)(?:\d+|0x[0-9a-f]*)$/.test(host))
    throw new Error(`"${entry}" is no host: an address has four numbers`);
  return { host, port: port === undefined ? undefined : Number(port) };
}
