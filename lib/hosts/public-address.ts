import { BlockList, isIPv4 } from "node:net";

/** IPv4 networks that are not the public internet: IANA's special-purpose registry, multicast and what is reserved. */
const SPECIAL_V4 = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.31.196.0/24",
  "192.52.193.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "192.175.48.0/24",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/3",
];

/**
 * Parts of the IPv6 networks that are handed out (2000::/3) that are not: protocol assignments with Teredo, documentation, and
 * 6to4, which carries an IPv4 address that nothing would look at.
 */
const SPECIAL_V6 = ["2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20"];

const specialV4 = networks(SPECIAL_V4);
const specialV6 = networks(SPECIAL_V6);
const handedOutV6 = networks(["2000::/3"]);

/** Whether an IP address belongs to the public internet. What is not known to be public is not. */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !specialV4.check(address);
  // A zone, such as that of fe80::1%eth0, only comes with addresses of one link.
  if (address.includes("%")) return false;
  return handedOutV6.check(address, "ipv6") && !specialV6.check(address, "ipv6");
}

/** A list of networks, such as "10.0.0.0/8" or "fd00::/8". Throws for any other text. */
export function networks(texts: readonly string[]): BlockList {
  const list = new BlockList();
  for (const text of texts) addNetwork(list, text);
  return list;
}

function addNetwork(list: BlockList, text: string): void {
  const [address = "", bits] = text.split("/");
  const family = isIPv4(address) ? "ipv4" : "ipv6";
  if (bits === undefined) list.addAddress(address, family);
  else list.addSubnet(address, Number(bits), family);
}
