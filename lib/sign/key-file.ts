import { randomBytes } from "node:crypto";
import { type FileHandle, link, open, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { generateSigningKey, type SigningKey, signingKeyFromPem, signingKeyToPem } from "./keys.ts";

/** A key file that cannot be used. The message is for the operator; it names the file and what to do. */
export class KeyFileError extends Error {
  override name = "KeyFileError";
}

const OWNER_ONLY = 0o600;
const GROUP_AND_WORLD = 0o077;
const MAX_FILE_BYTES = 16_384;

/**
 * Writes a key to a new file with mode 0600, in a folder that exists. Returns false where a file was there already,
 * which stays untouched. The file appears whole and synced to disk or not at all, also when two processes race.
 * Throws what the file system throws.
 */
export function createKeyFile(path: string, key: SigningKey): Promise<boolean> {
  return createPrivateFile(path, signingKeyToPem(key));
}

/** Writes a text to a new file, as createKeyFile does with a key. */
export async function createPrivateFile(path: string, text: string): Promise<boolean> {
  const draft = `${path}.${randomBytes(8).toString("hex")}.tmp`;
  try {
    await writeDraft(draft, text);
    // Unlike a rename, a link never replaces a file.
    await link(draft, path);
  } catch (e: unknown) {
    if (errnoOf(e) === "EEXIST") return false;
    throw e;
  } finally {
    await rm(draft, { force: true });
  }
  await syncFolder(dirname(path));
  return true;
}

/**
 * Reads a PKCS #8 PEM key file. Symbolic links are followed, because orchestrators mount secrets as links.
 * Throws KeyFileError where there is no such file, where its mode lets group or world in, or where it holds no
 * Ed25519 private key. Modes are not checked on Windows, which has none.
 */
export async function loadKeyFile(path: string): Promise<SigningKey> {
  const file = await openKeyFile(path);
  try {
    await requireOwnerOnly(file, path);
    return signingKeyFromPem(await file.readFile("utf8"));
  } catch (e: unknown) {
    if (e instanceof KeyFileError) throw e;
    throw new KeyFileError(`The key file ${path} holds no Ed25519 private key in PKCS #8 PEM form.`, { cause: e });
  } finally {
    await file.close();
  }
}

/** Reads the key file, or makes it with a new key where there is none. `created` tells which. Throws as the two do. */
export async function loadOrCreateKeyFile(path: string): Promise<{ key: SigningKey; created: boolean }> {
  const created = !(await exists(path)) && (await createKeyFile(path, generateSigningKey()));
  return { key: await loadKeyFile(path), created };
}

async function writeDraft(path: string, text: string): Promise<void> {
  const file = await open(path, "wx", OWNER_ONLY);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

// A new name survives a power cut only once its folder is synced. Windows cannot open folders.
async function syncFolder(path: string): Promise<void> {
  if (process.platform === "win32") return;
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

async function openKeyFile(path: string): Promise<FileHandle> {
  try {
    return await open(path, "r");
  } catch (e: unknown) {
    throw new KeyFileError(`The key file ${path} cannot be opened: ${errnoOf(e) ?? "unknown error"}.`, { cause: e });
  }
}

async function requireOwnerOnly(file: FileHandle, path: string): Promise<void> {
  // Asked of the open file, so that it is the file that is read.
  const { mode, size } = await file.stat();
  if (size > MAX_FILE_BYTES) throw new KeyFileError(`The key file ${path} is larger than ${MAX_FILE_BYTES} bytes.`);
  if (process.platform === "win32" || (mode & GROUP_AND_WORLD) === 0) return;
  const shown = (mode & 0o777).toString(8).padStart(4, "0");
  throw new KeyFileError(`The key file ${path} is open to others (mode ${shown}). Make it private: chmod 600 ${path}`);
}

async function exists(path: string): Promise<boolean> {
  try {
    await (await open(path, "r")).close();
    return true;
  } catch (e: unknown) {
    return errnoOf(e) !== "ENOENT";
  }
}

function errnoOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error ? String(error.code) : undefined;
}
