import { createHash, randomBytes } from "node:crypto";
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
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  WriteMode,
  type WriteRequest,
  type WriteResponseSchema,
} from "../../../../gen/ts/reeve/tools/v1/file_system_pb.ts";
import { asFault, requireFile, requireOneName } from "../../roots/refusals.ts";
import type { HeldParent } from "../../roots/roots.ts";
import type { ToolContext } from "../tool.ts";

const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW, O_APPEND } = constants;

const NEED = { access: "write", field: "path" } as const;

const DEFAULT_PERMISSIONS = 0o644;

const writeBytes = promisify(write);
const sync = promisify(fdatasync);

interface Job {
  place: HeldParent;
  bytes: Uint8Array;
  permissions: number;
}

/** fs.write: creates, replaces atomically, or appends, and is on the disk when it returns. */
export async function writeFile(
  input: WriteRequest,
  { roots }: ToolContext,
): Promise<MessageInitShape<typeof WriteResponseSchema>> {
  const { path, text, data, mode, createFolders } = input;
  const need = { access: "write", field: "path", createFolders } as const;
  const bytes = data.length > 0 ? data : Buffer.from(text, "utf8");
  const permissions = input.permissions || DEFAULT_PERMISSIONS;
  using place = roots.openParent(path, need);
  const created = await put(mode, { place, bytes, permissions }).catch((error: unknown) => {
    throw asFault(error, path, need);
  });
  return { bytesWritten: BigInt(bytes.length), created, sha256: createHash("sha256").update(bytes).digest("hex") };
}

async function put(mode: WriteMode, job: Job): Promise<boolean> {
  if (mode === WriteMode.CREATE) return await create(job);
  return mode === WriteMode.APPEND ? await append(job) : await replace(job);
}

async function create({ place, bytes, permissions }: Job): Promise<boolean> {
  const path = place.folder.at(place.name);
  const fd = openSync(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  await fill(fd, bytes, () => fchmodSync(fd, permissions)).catch((error: unknown) => {
    unlinkSync(path);
    throw error;
  });
  return true;
}

async function append(job: Job): Promise<boolean> {
  using existing = job.place.look();
  if (existing === undefined) return await create(job);
  requireFile(existing, job.place.path, NEED);
  requireOneName(existing, job.place.path, NEED);
  await fill(existing.open(O_WRONLY | O_APPEND), job.bytes);
  return false;
}

/** A reader sees the old file or the new one: the new one is whole under a name of its own before it takes the place. */
async function replace({ place, bytes, permissions }: Job): Promise<boolean> {
  using existing = place.look();
  if (existing !== undefined) {
    requireFile(existing, place.path, NEED);
    // A rename needs no right to the old file. A plain write would.
    closeSync(existing.open(O_WRONLY));
  }
  const temporary = place.folder.at(`.reeve-${randomBytes(8).toString("hex")}.tmp`);
  const fd = openSync(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  try {
    await fill(fd, bytes, () => {
      if (existing !== undefined) takeOwner(fd, existing.stats);
      fchmodSync(fd, existing === undefined ? permissions : existing.stats.mode & 0o7777);
    });
    renameSync(temporary, place.folder.at(place.name));
  } catch (error: unknown) {
    unlinkSync(temporary);
    throw error;
  }
  return existing === undefined;
}

/** Writes everything, makes it last, and closes the descriptor in every case. */
async function fill(fd: number, bytes: Uint8Array, finish?: () => void): Promise<void> {
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

/** Keeps the owner where the agent may: it is not the owner's fault that a file is written anew. */
function takeOwner(fd: number, { uid, gid }: { uid: number; gid: number }): void {
  try {
    fchownSync(fd, uid, gid);
  } catch {
    // Without the right to change the owner the agent becomes the owner, as with any editor.
  }
}
