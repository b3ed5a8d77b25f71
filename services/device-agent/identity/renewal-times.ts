import type { X509Certificate } from "node:crypto";
import { BACKDATE_MS } from "../../../lib/identity/authority.ts";

/** How far from the middle of a certificate's life its renewal may be, as a part of its life, to either side. */
const SPREAD = 0.1;

/** The longest wait after a renewal that failed, in milliseconds. */
const LONGEST_RETRY_MS = 60_000;

/** When to renew a certificate, in milliseconds since 1970: about its half-life, spread by a random number from 0 to 1. */
export function renewAt(
  { validFrom, validTo }: Pick<X509Certificate, "validFrom" | "validTo">,
  random: number,
): number {
  const end = Date.parse(validTo);
  const lifeMs = end - (Date.parse(validFrom) + BACKDATE_MS);
  return end - lifeMs * (0.5 + SPREAD - 2 * SPREAD * random);
}

/** How long to wait after a renewal that failed, in milliseconds: the less time is left, the less. */
export function retryMs(leftMs: number, random: number): number {
  return Math.min(LONGEST_RETRY_MS, Math.max(100, leftMs / 10)) * (0.5 + random / 2);
}
