import { randomBytes } from "node:crypto";
import { chmod, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Keys } from "./key-ring.ts";

/**
 * Writes the public keys into the state folder: grant.pub for devices (base64 of the raw keys that are trusted now, one
 * a line, the one that signs first) and checkpoint.vkey for verifiers of the log (every key that it has had).
 */
export async function writeKeyFiles(stateDir: string, { grantKeys, vkeys }: Keys): Promise<void> {
  const lines = grantKeys.map(({ raw }) => `${Buffer.from(raw).toString("base64")}\n`);
  await replaceFile(join(stateDir, "grant.pub"), lines.join(""));
  await replaceFile(join(stateDir, "checkpoint.vkey"), `${vkeys}\n`);
}

// A device that starts meanwhile reads the old keys or the new ones, never half of them.
async function replaceFile(path: string, text: string): Promise<void> {
  const draft = `${path}.${randomBytes(8).toString("hex")}.tmp`;
  try {
    await writeFile(draft, text, { mode: 0o600 });
    // As the umask neither widens nor narrows it: public, and no other user's to write.
    await chmod(draft, 0o644);
    await rename(draft, path);
  } finally {
    await rm(draft, { force: true });
  }
}
