import { randomBytes } from "node:crypto";
import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fdatasync,
  openSync,
  renameSync,
  unlinkSync,
  write,
} from "node:fs";
import { promisify } from "node:util";
import type { HeldParent } from "../../roots/roots.ts";
import type { Attributes } from "../../undo/change.ts";

const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;

const writeBytes = promisify(write);
const sync = promisify(fdatasync);

/** A file's permission bits, and its owner where it shall keep one. */
export type FileAttributes = Pick<Attributes, "mode"> & Partial<Attributes>;

/** Creates a file, whole and on the disk when this resolves. Rejects with EEXIST where the name is taken. */
export async function createFile({ folder, name }: HeldParent, bytes: Uint8Array, as: FileAttributes): Promise<void> {
  const path = folder.at(name);
  const fd = openSync(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  await fill(fd, bytes, () => dress(fd, as)).catch((error: unknown) => {
    unlinkSync(path);
    throw error;
  });
}

/**
 * Puts a file in a name's place. A reader sees the old file or the new one: the new one is whole under a name of its own
 * before it takes the place. `last` is run right before that, and keeps the old file by throwing.
 */
export async function replaceFileAt(
  { folder, name }: HeldParent,
  bytes: Uint8Array,
  as: FileAttributes,
  last?: () => void,
): Promise<void> {
  const temporary = folder.at(`.reeve-${randomBytes(8).toString("hex")}.tmp`);
  const fd = openSync(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  try {
    await fill(fd, bytes, () => dress(fd, as));
    last?.();
    renameSync(temporary, folder.at(name));
  } catch (error: unknown) {
    unlinkSync(temporary);
    throw error;
  }
}

/** Writes everything, makes it last, and closes the descriptor in every case. */
export async function fill(fd: number, bytes: Uint8Array, finish?: () => void): Promise<void> {
  try {
    for (let done = 0; done < bytes.length; ) {
      done += (await writeBytes(fd, bytes, done, bytes.length - done)).bytesWritten;
    }
    finish?.();
    await sync(fd);
  } finally {
    closeSync(fd);
  }
}

function dress(fd: number, { mode, uid, gid }: FileAttributes): void {
  // Before the permissions: a change of the owner clears some of them.
  const isOwned = uid === undefined || gid === undefined || takeOwner(fd, uid, gid);
  // A program that runs as its owner must not become one that runs as the agent.
  fchmodSync(fd, isOwned ? mode : mode & 0o777);
}

/** Keeps the owner where the agent may: it is not the owner's fault that a file is written anew. False where it may not. */
function takeOwner(fd: number, uid: number, gid: number): boolean {
  try {
    fchownSync(fd, uid, gid);
    return true;
  } catch {
    // Without the right to change the owner the agent becomes the owner, as with any editor.
    return false;
  }
}
