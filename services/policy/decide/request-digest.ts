import { sha256Hex } from "../../../lib/sign/canonical.ts";
import type { WholeRequest } from "./request-facts.ts";

/**
 * What makes two requests with one call id the same call: who asks, for which tool on which device, with which arguments,
 * how long it may run, why, and through which door. Facts around it, such as the time, roles or the device's manifest,
 * may have changed since: the decision stands as it was taken. SHA-256 in hex.
 */
export function requestDigest({ request, principal, device, tool }: WholeRequest, argsDigest: string): string {
  const { timeoutMs, purpose, source } = request;
  return sha256Hex(JSON.stringify([principal.id, device.id, tool.name, argsDigest, timeoutMs, purpose, source]));
}
