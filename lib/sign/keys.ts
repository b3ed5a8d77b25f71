import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  hash,
  type KeyObject,
  sign as signSync,
  verify as verifySync,
} from "node:crypto";

/** The length of a raw Ed25519 public key, in bytes (RFC 8032). */
export const PUBLIC_KEY_BYTES = 32;
/** The length of an Ed25519 signature, in bytes (RFC 8032). */
export const SIGNATURE_BYTES = 64;

/** An Ed25519 public key (RFC 8032). */
export interface VerifyKey {
  /** The first 16 hex digits of the SHA-256 of the raw key. */
  readonly keyId: string;
  /** The raw key, 32 bytes. */
  readonly raw: Uint8Array;
  /** The same key for node:crypto. */
  readonly keyObject: KeyObject;
}

/** An Ed25519 key pair. It is its own VerifyKey. */
export interface SigningKey extends VerifyKey {
  readonly privateKey: KeyObject;
}

/** The keys that are trusted for one purpose. */
export interface Keyring {
  /** The trusted key with that id. The id comes from the signer and proves nothing. */
  find(keyId: string): VerifyKey | undefined;
}

/** Makes a new key pair from the system's randomness. */
export function generateSigningKey(): SigningKey {
  return signingKeyOf(generateKeyPairSync("ed25519").privateKey);
}

/** Reads an unencrypted PKCS #8 PEM text. Throws TypeError where it holds no Ed25519 private key. */
export function signingKeyFromPem(pem: string): SigningKey {
  return signingKeyOf(privateKeyFromPem(pem));
}

/** The key pair as an unencrypted PKCS #8 PEM text. A secret. */
export function signingKeyToPem(key: SigningKey): string {
  return key.privateKey.export({ type: "pkcs8", format: "pem" }).toString();
}

/** A public key from its 32 raw bytes. Throws TypeError for any other length. */
export function verifyKeyFromRaw(raw: Uint8Array): VerifyKey {
  if (raw.length !== PUBLIC_KEY_BYTES) throw new TypeError(`an Ed25519 public key has ${PUBLIC_KEY_BYTES} bytes`);
  const jwk = { kty: "OKP", crv: "Ed25519", x: Buffer.from(raw).toString("base64url") };
  return { keyId: keyIdOf(raw), raw, keyObject: createPublicKey({ key: jwk, format: "jwk" }) };
}

/** The id of a raw public key: the first 16 hex digits of its SHA-256. A hint for finding the key, never a proof. */
export function keyIdOf(raw: Uint8Array): string {
  return hash("sha256", raw, "hex").slice(0, 16);
}

/** A keyring of fixed keys. Throws TypeError where two different keys have the same id. */
export function createKeyring(keys: Iterable<VerifyKey>): Keyring {
  const byId = new Map<string, VerifyKey>();
  for (const key of keys) {
    const known = byId.get(key.keyId);
    if (known && !isSameKey(known, key)) throw new TypeError(`two keys have the id ${key.keyId}`);
    byId.set(key.keyId, key);
  }
  return { find: (keyId) => byId.get(keyId) };
}

/** True where both are the same public key. */
export function isSameKey(a: VerifyKey, b: VerifyKey): boolean {
  return a === b || Buffer.compare(a.raw, b.raw) === 0;
}

/** Signs bytes as they are: 64 bytes, pure Ed25519. Callers bind a type or a context into the bytes. */
export function signBytes(key: SigningKey, bytes: Uint8Array): Uint8Array {
  return signSync(null, bytes, key.privateKey);
}

/** True where the signature is the key's over these bytes. Never throws for bytes of any content and length. */
export function verifyBytes(key: VerifyKey, bytes: Uint8Array, signature: Uint8Array): boolean {
  return signature.length === SIGNATURE_BYTES && verifySync(null, bytes, key.keyObject, signature);
}

function signingKeyOf(privateKey: KeyObject): SigningKey {
  const keyObject = createPublicKey(privateKey);
  const raw = Buffer.from(keyObject.export({ format: "jwk" }).x ?? "", "base64url");
  return { keyId: keyIdOf(raw), raw, keyObject, privateKey };
}

function privateKeyFromPem(pem: string): KeyObject {
  // The cause is dropped on purpose: nothing that was derived from a secret's text may reach a log.
  const key = parsePem(pem);
  if (key?.asymmetricKeyType !== "ed25519") throw new TypeError("no Ed25519 private key in PKCS #8 PEM form");
  return key;
}

function parsePem(pem: string): KeyObject | undefined {
  try {
    return createPrivateKey({ key: pem, format: "pem" });
  } catch {
    return undefined;
  }
}
