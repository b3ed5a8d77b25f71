import { createPublicKey, type KeyObject } from "node:crypto";

const ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/** The public half of a Restate server's request identity, as its SDK expects it: "publickeyv1_" and base58 of 32 bytes. */
export function identityKeyOf(key: KeyObject | string): string {
  const jwk = createPublicKey(key).export({ format: "jwk" });
  if (jwk.crv !== "Ed25519" || jwk.x === undefined) throw new TypeError("a request identity is an Ed25519 key");
  return `publickeyv1_${base58(Buffer.from(jwk.x, "base64url"))}`;
}

function base58(bytes: Uint8Array): string {
  let number = BigInt(`0x${Buffer.from(bytes).toString("hex")}`);
  let text = "";
  for (; number > 0n; number /= 58n) text = `${ALPHABET[Number(number % 58n)]}${text}`;
  const zeros = bytes.findIndex((byte) => byte !== 0);
  return "1".repeat(zeros < 0 ? bytes.length : zeros) + text;
}
