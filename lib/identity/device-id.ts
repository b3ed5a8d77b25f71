import type { VerifyKey } from "../sign/keys.ts";

/** The id of the device that has this key: "dev-" and the first 16 hex digits of the SHA-256 of the raw public key. */
export function deviceIdOf(key: VerifyKey): string {
  return `dev-${key.keyId}`;
}
