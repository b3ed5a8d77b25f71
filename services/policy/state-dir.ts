import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { loadOrCreateKeyFile } from "../../lib/sign/key-file.ts";
import type { SigningKey } from "../../lib/sign/keys.ts";
import { formatVkey, type NoteKey, noteKeyOf } from "../../lib/sign/note.ts";
import type { PolicyConfig } from "./config.ts";

/** Policy's own files and keys. */
export interface PolicyState {
  /** The database. */
  databaseFile: string;
  /** Signs grants. */
  grantKey: SigningKey;
  /** Signs checkpoints. */
  checkpointKey: SigningKey;
  /** Verifies checkpoints; its name is the log's origin. */
  noteKey: NoteKey;
  /** The same as a text, in the form of C2SP signed notes. */
  vkey: string;
}

/**
 * Makes policy's folder and keys where they are missing, closes the folder to everybody else, and writes the public keys
 * beside the private ones: grant.pub (base64 of the raw key) for devices, checkpoint.vkey for who verifies the log.
 */
export async function openPolicyState({ stateDir, origin }: PolicyConfig): Promise<PolicyState> {
  await mkdir(stateDir, { recursive: true, mode: 0o700 });
  await chmod(stateDir, 0o700);
  const grant = await loadOrCreateKeyFile(join(stateDir, "grant.key"));
  const checkpoint = await loadOrCreateKeyFile(join(stateDir, "checkpoint.key"));
  const noteKey = noteKeyOf(origin ?? `reeve/${checkpoint.key.keyId}`, checkpoint.key);
  const vkey = formatVkey(noteKey);
  await writeFile(join(stateDir, "grant.pub"), `${Buffer.from(grant.key.raw).toString("base64")}\n`);
  await writeFile(join(stateDir, "checkpoint.vkey"), `${vkey}\n`);
  return {
    databaseFile: join(stateDir, "policy.db"),
    grantKey: grant.key,
    checkpointKey: checkpoint.key,
    noteKey,
    vkey,
  };
}
