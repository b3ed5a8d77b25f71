import { createCipheriv, createDecipheriv, randomBytes, scrypt } from "node:crypto";

/** A secret under a passphrase, as it is kept in a file: base64 texts. */
export interface SealedSecret {
  /** Of scrypt. */
  salt: string;
  /** Of AES-256-GCM. */
  nonce: string;
  /** The encrypted secret, then GCM's tag of 16 bytes. */
  sealed: string;
}

/** The fewest characters of a passphrase: a reader of the file can try passphrases without limit. */
export const MIN_PASSPHRASE = 12;

/**
 * scrypt's N: 128 MiB and about half a second for each try (OWASP Password Storage Cheat Sheet, N = 2^17, r = 8, p = 1).
 * Not read from the file, so that no file can make a reader use up the memory.
 */
const COST = 2 ** 17;

const MAX_MEMORY = 256 * 1024 * 1024;

const KEY_BYTES = 32;
const SALT_BYTES = 16;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const CIPHER = "aes-256-gcm";

/**
 * Seals a secret with a passphrase.
 *
 * @param context what the secret is for. It is kept beside the secret and has to be the same when the secret is opened.
 * @param cost scrypt's N, the same when it is opened; only tests lower it. Default COST.
 */
export async function sealWithPassphrase(
  secret: string,
  passphrase: string,
  context: string,
  cost: number = COST,
): Promise<SealedSecret> {
  const salt = randomBytes(SALT_BYTES);
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, await keyFrom(passphrase, salt, cost), nonce);
  cipher.setAAD(Buffer.from(context));
  const sealed = Buffer.concat([cipher.update(secret, "utf8"), cipher.final(), cipher.getAuthTag()]);
  return { salt: base64(salt), nonce: base64(nonce), sealed: base64(sealed) };
}

/** The secret; undefined where the passphrase is not the one, or anything was changed. */
export async function openWithPassphrase(
  { salt, nonce, sealed }: SealedSecret,
  passphrase: string,
  context: string,
  cost: number = COST,
): Promise<string | undefined> {
  const key = await keyFrom(passphrase, Buffer.from(salt, "base64"), cost);
  const bytes = Buffer.from(sealed, "base64");
  const iv = Buffer.from(nonce, "base64");
  if (bytes.length < TAG_BYTES || iv.length !== NONCE_BYTES) return undefined;
  const decipher = createDecipheriv(CIPHER, key, iv);
  decipher.setAAD(Buffer.from(context));
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
  const opened = decipher.update(bytes.subarray(0, -TAG_BYTES));
  try {
    return Buffer.concat([opened, decipher.final()]).toString("utf8");
  } catch {
    return undefined;
  }
}

/** The same characters give the same key, however a keyboard composes them (RFC 8265 uses NFC; NFKC is wider). */
function keyFrom(passphrase: string, salt: Buffer, N: number): Promise<Buffer> {
  const cost = { N, r: 8, p: 1, maxmem: MAX_MEMORY };
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  scrypt(passphrase.normalize("NFKC"), salt, KEY_BYTES, cost, (error, key) => (error ? reject(error) : resolve(key)));
  return promise;
}

function base64(bytes: Buffer): string {
  return bytes.toString("base64");
}
