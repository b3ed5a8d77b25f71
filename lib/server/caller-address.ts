import { isIPv6 } from "node:net";

/** What callers without an address of the network are counted under: those of a Unix socket. */
const LOCAL = "local";

/** IPv6 groups of 16 bits that an Internet provider gives to one customer. */
const NETWORK_GROUPS = 4;

/**
 * What the connections of one remote machine have in common: its IPv4 address, or the first 64 bits of its IPv6 address,
 * because one machine may use all addresses of such a network.
 */
export function addressKey(remoteAddress: string | undefined): string {
  if (remoteAddress === undefined) return LOCAL;
  const address = remoteAddress.replace(/^::ffff:(?=\d+\.)/i, "");
  if (!isIPv6(address)) return address;
  const [head = "", tail] = address.replace(/%.*$/, "").split("::");
  const groups = head === "" ? [] : head.split(":");
  if (tail !== undefined) {
    const rest = tail === "" ? 0 : tail.split(":").length;
    while (groups.length + rest < 8) groups.push("0");
  }
  return `${groups.slice(0, NETWORK_GROUPS).join(":")}::/64`;
}
