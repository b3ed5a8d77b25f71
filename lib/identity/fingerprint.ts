import { hash, type KeyObject } from "node:crypto";

/** SHA-256 of a public key (SubjectPublicKeyInfo), as 64 hex digits. Takes a private key's public half. */
export function spkiDigest(publicKey: KeyObject): string {
  return hash("sha256", spkiOf(publicKey), "hex");
}

/** The same for people to compare: 32 hex pairs in capitals with colons, as openssl shows fingerprints. */
export function fingerprintOf(publicKey: KeyObject): string {
  return (spkiDigest(publicKey).toUpperCase().match(/../g) ?? []).join(":");
}

/** A public key as SubjectPublicKeyInfo, DER. */
export function spkiOf(publicKey: KeyObject): Uint8Array<ArrayBuffer> {
  return new Uint8Array(publicKey.export({ type: "spki", format: "der" }));
}
