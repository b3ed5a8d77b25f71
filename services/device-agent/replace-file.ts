import { randomBytes } from "node:crypto";
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";

/**
 * Replaces a file, mode 0600, in a folder that exists. It is on disk when this resolves, and whole at any time, also where
 * the power fails meanwhile. Rejects with what the file system throws; then the old one is unchanged.
 */
export async function replaceFile(path: string, content: string | Uint8Array): Promise<void> {
  const draft = `${path}.${randomBytes(8).toString("hex")}.tmp`;
  try {
    await synced(await open(draft, "wx", 0o600), (file) => file.writeFile(content));
    await rename(draft, path);
  } finally {
    await rm(draft, { force: true });
  }
  // A rename survives a power cut only once its folder is synced. Windows cannot open folders.
  if (process.platform !== "win32") await synced(await open(dirname(path), "r"));
}

async function synced(file: FileHandle, write?: (file: FileHandle) => Promise<void>): Promise<void> {
  try {
    await write?.(file);
    await file.sync();
  } finally {
    await file.close();
  }
}
