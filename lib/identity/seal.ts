import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createSecretKey,
  type KeyObject,
  randomBytes,
  randomFillSync,
} from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import { createPrivateFile, readPrivateFile } from "../files/private-file.ts";

/** Seals what replicas keep in their database and the database's readers must not see. */
export type SealingKey = KeyObject;

/** Something sealed that cannot be opened: another key, another context, or changed bytes. */
export class SealError extends Error {
  override name = "SealError";
}

const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const KEY_ID_BYTES = 8;
/** Before the ciphertext: the version, the key's id and the nonce. */
const HEAD_BYTES = 1 + KEY_ID_BYTES + NONCE_BYTES;

/** What sealing adds, in bytes. */
export const SEAL_BYTES = HEAD_BYTES + TAG_BYTES;

/** The first byte of everything sealed: how it was done. 1 had no key id. No protobuf message begins with either byte. */
const WITHOUT_KEY_ID = 1;
const WITH_KEY_ID = 2;

/**
 * The key in a file: 32 bytes as base64. A missing file is made, mode 0600, in a folder of mode 0700, also when two
 * processes race for it. Throws where others may read the file, or where it holds no such key.
 */
export async function loadSealingKey(path: string): Promise<SealingKey> {
  if (!existsSync(path)) {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await createPrivateFile(path, `${randomBytes(KEY_BYTES).toString("base64")}\n`);
  }
  return sealingKeyOf(readPrivateFile(path), path);
}

function sealingKeyOf(text: string, path: string): SealingKey {
  const raw = Buffer.from(text.trim(), "base64");
  if (raw.length !== KEY_BYTES) throw new SealError(`${path} holds no sealing key: 32 bytes as base64 are needed`);
  return createSecretKey(raw);
}

/**
 * Encrypts and authenticates with AES-256-GCM under a random nonce: a version, the key's id, the nonce, the ciphertext, the
 * tag. `context` says what it is, such as "device-authority/1f3c", and has to be given again to open it, so that one sealed
 * thing cannot stand in for another.
 */
export function seal(key: SealingKey, plaintext: Uint8Array, context: string): Uint8Array {
  // One buffer for all of it: this is on the path of every call.
  const sealed = Buffer.allocUnsafe(HEAD_BYTES + plaintext.length + TAG_BYTES);
  sealed[0] = WITH_KEY_ID;
  keyIdOf(key).copy(sealed, 1);
  const nonce = sealed.subarray(1 + KEY_ID_BYTES, HEAD_BYTES);
  nextNonce(nonce);
  const cipher = createCipheriv("aes-256-gcm", key, nonce);
  cipher.setAAD(Buffer.from(context));
  // GCM encrypts as it goes: nothing is left for `final`, which makes the tag.
  cipher.update(plaintext).copy(sealed, HEAD_BYTES);
  cipher.final();
  cipher.getAuthTag().copy(sealed, HEAD_BYTES + plaintext.length);
  return sealed;
}

/** Random bytes that no nonce has used: asking the generator once for many costs a fraction of asking for each. */
const nonces = Buffer.alloc(1024 * NONCE_BYTES);
let noncesUsed = nonces.length;

function nextNonce(target: Buffer): void {
  if (noncesUsed === nonces.length) {
    randomFillSync(nonces);
    noncesUsed = 0;
  }
  nonces.copy(target, 0, noncesUsed, noncesUsed + NONCE_BYTES);
  noncesUsed += NONCE_BYTES;
}

/** Opens what `seal` made. Throws SealError, which names the keys where it was another one. */
export function unseal(key: SealingKey, sealed: Uint8Array, context: string): Uint8Array {
  const bytes = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength);
  const nonceAt = bytes[0] === WITH_KEY_ID ? 1 + KEY_ID_BYTES : 1;
  if (!isSealed(bytes) || bytes.length < nonceAt + NONCE_BYTES + TAG_BYTES) throw cannotOpen(context);
  if (nonceAt > 1) checkKeyId(key, bytes.subarray(1, nonceAt), context);
  const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(nonceAt, nonceAt + NONCE_BYTES));
  decipher.setAAD(Buffer.from(context));
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(nonceAt + NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
  } catch (cause: unknown) {
    throw cannotOpen(context, cause);
  }
}

/** Whether bytes begin as everything sealed does. A protobuf message and a JSON text never do. */
function isSealed(bytes: Uint8Array): boolean {
  return bytes[0] === WITH_KEY_ID || bytes[0] === WITHOUT_KEY_ID;
}

const keyIds = new WeakMap<SealingKey, Buffer>();

/** The first 8 bytes of a hash of the key: names it, and reveals nothing about it. */
function keyIdOf(key: SealingKey): Buffer {
  const known = keyIds.get(key);
  if (known !== undefined) return known;
  const id = createHash("sha256").update("reeve sealing key\0").update(key.export()).digest().subarray(0, KEY_ID_BYTES);
  keyIds.set(key, id);
  return id;
}

function checkKeyId(key: SealingKey, id: Buffer, context: string): void {
  const own = keyIdOf(key);
  if (own.equals(id)) return;
  throw new SealError(
    `${context} was sealed with the key ${id.toString("hex")}, and this process has ${own.toString("hex")}: every replica needs the same key`,
  );
}

function cannotOpen(context: string, cause?: unknown): SealError {
  const message = `${context} was sealed with another key, or has been changed: every replica needs the same key`;
  return new SealError(message, { cause });
}
