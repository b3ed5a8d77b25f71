import { randomBytes } from "node:crypto";
import { closeSync, fstatSync, openSync, readFileSync } from "node:fs";
import { link, open, rm } from "node:fs/promises";
import { dirname } from "node:path";

/** A file with a secret that cannot be used. The message is for the operator; it names the file and what to do. */
export class PrivateFileError extends Error {
  override name = "PrivateFileError";
}

const OWNER_ONLY = 0o600;
const OTHERS = 0o007;
const MAX_FILE_BYTES = 65_536;

/**
 * Throws PrivateFileError where a file's mode lets others read or change it. Its group may: that is how orchestrators
 * mount a secret, or a volume, for a process without root. Modes are not checked on Windows, which has none.
 */
export function requirePrivate(path: string, mode: number | bigint): void {
  if (process.platform === "win32" || (Number(mode) & OTHERS) === 0) return;
  const shown = (Number(mode) & 0o777).toString(8).padStart(4, "0");
  throw new PrivateFileError(
    `The file ${path} is open to others (mode ${shown}), and it holds a secret. Make it private: chmod o-rwx ${path}`,
  );
}

/**
 * The text of a file that holds a secret, such as a private key or a password. Symbolic links are followed, because
 * orchestrators mount secrets as links. Throws PrivateFileError where there is no such file, where others may read it,
 * or where it is beyond 64 KiB.
 */
export function readPrivateFile(path: string): string {
  const file = openToRead(path);
  try {
    // Asked of the open file, so that it is the file that is read.
    const { mode, size } = fstatSync(file);
    if (size > MAX_FILE_BYTES) throw new PrivateFileError(`The file ${path} is larger than ${MAX_FILE_BYTES} bytes.`);
    requirePrivate(path, mode);
    return readFileSync(file, "utf8");
  } finally {
    closeSync(file);
  }
}

/**
 * Writes a text to a new file with mode 0600, in a folder that exists. Returns false where the file existed,
 * which stays untouched. The file appears whole and synced to disk or not at all, also when two processes race.
 * Throws what the file system throws.
 */
export async function createPrivateFile(path: string, text: string): Promise<boolean> {
  const draft = `${path}.${randomBytes(8).toString("hex")}.tmp`;
  try {
    await writeDraft(draft, text);
    // Unlike a rename, a link never replaces a file.
    await link(draft, path);
  } catch (e: unknown) {
    if (codeOf(e) === "EEXIST") return false;
    throw e;
  } finally {
    await rm(draft, { force: true });
  }
  await syncFolder(dirname(path));
  return true;
}

function openToRead(path: string): number {
  try {
    return openSync(path, "r");
  } catch (cause: unknown) {
    throw new PrivateFileError(`The file ${path} cannot be opened: ${codeOf(cause)}.`, { cause });
  }
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

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown error";
}
