import { existsSync } from "node:fs";
import { createPrivateFile, PrivateFileError, readPrivateFile } from "../files/private-file.ts";
import { generateSigningKey, type SigningKey, signingKeyFromPem, signingKeyToPem } from "./keys.ts";

/** Writes a key to a new file, as createPrivateFile writes a text. */
export function createKeyFile(path: string, key: SigningKey): Promise<boolean> {
  return createPrivateFile(path, signingKeyToPem(key));
}

/** Reads a PKCS #8 PEM key file. Rejects as readPrivateFile throws, and with PrivateFileError for no Ed25519 private key. */
export async function loadKeyFile(path: string): Promise<SigningKey> {
  const text = readPrivateFile(path);
  try {
    return signingKeyFromPem(text);
  } catch (cause: unknown) {
    const problem = `The key file ${path} holds no Ed25519 private key in PKCS #8 PEM form.`;
    throw new PrivateFileError(problem, { cause });
  }
}

/** Reads the key file, or makes it with a new key where it is missing. `created` is true where it was made. Rejects as the two do. */
export async function loadOrCreateKeyFile(path: string): Promise<{ key: SigningKey; created: boolean }> {
  const created = !existsSync(path) && (await createKeyFile(path, generateSigningKey()));
  return { key: await loadKeyFile(path), created };
}
