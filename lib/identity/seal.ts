import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject, randomBytes } from "node:crypto";
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
/** The first byte of everything sealed: how it was done. */
const VERSION = 1;

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
 * Encrypts and authenticates with AES-256-GCM under a random nonce. `context` says what it is, such as
 * "device-authority/1f3c", and has to be given again to open it, so that one sealed thing cannot stand in for another.
 */
export function seal(key: SealingKey, plaintext: Uint8Array, context: string): Uint8Array {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv("aes-256-gcm", key, nonce);
  cipher.setAAD(Buffer.from(context));
  return Buffer.concat([Buffer.of(VERSION), nonce, cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
}

/** Opens what `seal` made. Throws SealError. */
export function unseal(key: SealingKey, sealed: Uint8Array, context: string): Uint8Array {
  const bytes = Buffer.from(sealed);
  if (bytes.length < 1 + NONCE_BYTES + TAG_BYTES || bytes[0] !== VERSION) throw cannotOpen(context);
  const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(1, 1 + NONCE_BYTES));
  decipher.setAAD(Buffer.from(context));
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(1 + NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
  } catch (cause: unknown) {
    throw cannotOpen(context, cause);
  }
}

function cannotOpen(context: string, cause?: unknown): SealError {
  return new SealError(
    `${context} was sealed with another key, or has been changed: every replica needs the same key`,
    {
      cause,
    },
  );
}
