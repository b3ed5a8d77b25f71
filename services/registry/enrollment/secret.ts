import { hash, randomBytes, timingSafeEqual } from "node:crypto";

/** A token's secret, base64url of 128 random bits, and what is kept of it. No slow hash: there is nothing to guess. */
export function mintSecret(): { secret: string; secretHash: Uint8Array } {
  const secret = randomBytes(16).toString("base64url");
  return { secret, secretHash: hashOf(secret) };
}

/** True where it is the secret, in a time that does not depend on how much of it was right. */
export function isSecret(secret: string, secretHash: Uint8Array): boolean {
  return timingSafeEqual(hashOf(secret), secretHash);
}

/** A new enrollment's id: "enr-" and 32 hex digits. */
export function newEnrollmentId(): string {
  return `enr-${randomBytes(16).toString("hex")}`;
}

/** True where a text has the form of an enrollment's id, so that anything else costs no look into the database. */
export function isEnrollmentId(text: string): boolean {
  return /^enr-[0-9a-f]{32}$/.test(text);
}

function hashOf(secret: string): Buffer {
  return hash("sha256", secret, "buffer");
}
