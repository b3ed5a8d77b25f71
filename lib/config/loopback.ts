/**
 * True for a host that is this machine and nothing else: "localhost" or an address of loopback, IPv6 with or without the
 * brackets of a URL.
 */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || host === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(host);
}
