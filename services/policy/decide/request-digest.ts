import { sha256Hex } from "../../../lib/sign/canonical.ts";
import type { WholeRequest } from "./request-facts.ts";

/**
 * What makes two requests with one call id the same question: who asks, for which tool on which device or devices, with
 * which arguments, how long it may run, why, and through which door; at which delivery, and by which approval. Facts around
 * it, such as the time, roles or the device's manifest, may have changed since: the decision stands as it was taken.
 * SHA-256 in hex.
 */
export function requestDigest({ request, principal, device, tool }: WholeRequest, argsDigest: string): string {
  const { timeoutMs, purpose, source, delivery, approvalId } = request;
  const devices = request.devices.map(({ id }) => id);
  const plain = [principal.id, device.id, tool.name, argsDigest, timeoutMs, purpose, source];
  // A plain question has the digest that it had before there were others: decisions outlive versions.
  const isPlain = delivery === 0 && approvalId === "" && devices.length === 0;
  return sha256Hex(JSON.stringify(isPlain ? plain : [...plain, delivery, approvalId, devices]));
}
