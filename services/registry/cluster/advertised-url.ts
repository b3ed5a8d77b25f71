import { type NetworkInterfaceInfo, networkInterfaces } from "node:os";

/**
 * Where other replicas reach a replica that listens at `url`: as configured, else the address it listens on. A wildcard
 * address stands for the machine's first one that is not loopback, IPv4 before IPv6.
 */
export function advertisedUrl(
  configured: string | undefined,
  url: string,
  interfaces: NodeJS.Dict<NetworkInterfaceInfo[]> = networkInterfaces(),
): string {
  if (configured !== undefined) return configured.replace(/\/$/, "");
  const { protocol, hostname, port } = new URL(url);
  if (hostname !== "0.0.0.0" && hostname !== "[::]") return url;
  const outer = Object.values(interfaces).flatMap((all = []) => all.filter(({ internal }) => !internal));
  const found =
    outer.find(({ family }) => family === "IPv4") ?? outer.find(({ address }) => !/^fe[89ab]/i.test(address));
  const address = found?.address ?? "127.0.0.1";
  return `${protocol}//${address.includes(":") ? `[${address}]` : address}:${port}`;
}
