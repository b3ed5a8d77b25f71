import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { type HeldEntry, SymbolicLinkError } from "./held.ts";
import type { Need } from "./lexical.ts";

/** The fault for a path that the device's manifest does not grant. */
export function outsideRoots(path: string, field: string, why: string): Error {
  return fault(ErrorReason.PATH_OUTSIDE_ROOTS, { field, path }, { message: `${path} ${why}` });
}

/** The fault for what the operating system said about a path: not there, or refused. */
export function osFault(error: unknown, path: string, field: string): Error {
  const errno = (error as NodeJS.ErrnoException).code ?? "EUNKNOWN";
  if (errno === "ENOENT") {
    return fault(ErrorReason.TARGET_NOT_FOUND, { field }, { message: `${path} does not exist`, cause: error });
  }
  return refused(path, field, errno, WORDS[errno] ?? `was refused by the operating system (${errno})`, error);
}

/** The fault for a file whose folder does not exist. */
export function folderMissing(path: string, field: string): Error {
  const message = `the folder above ${path} does not exist: createFolders makes it`;
  return fault(ErrorReason.TARGET_NOT_FOUND, { field }, { message });
}

/** A refusal in the operating system's place, with an errno of its own words. */
export function refused(path: string, field: string, errno: string, why: string, cause?: unknown): Error {
  return fault(ErrorReason.OS_REFUSED, { field, errno }, { message: `${path} ${why}`, cause });
}

const WORDS: Readonly<Record<string, string>> = {
  EACCES: "may not be touched by the device agent's user",
  EPERM: "may not be touched by the device agent's user",
  EEXIST: "exists already",
  EISDIR: "is a folder",
  ENOTDIR: "goes through something that is not a folder",
  ENOSPC: "does not fit on the disk",
  EROFS: "is on a disk that can only be read",
  ENAMETOOLONG: "has a name that is too long",
};

/** Runs a step of a walk and turns what the operating system or the walker says into a fault. */
export function guarded<T>(path: string, need: Need, action: () => T): T {
  try {
    return action();
  } catch (error: unknown) {
    throw asFault(error, path, need);
  }
}

/** The fault for what the operating system or the walker threw. Anything else stays as it is. */
export function asFault(error: unknown, path: string, need: Need): unknown {
  if (error instanceof SymbolicLinkError) return linkFault(path, error.message, need);
  return typeof (error as NodeJS.ErrnoException).code === "string" ? osFault(error, path, need.field) : error;
}

/** Refuses everything but a regular file: a pipe or device may block, or do something when it is opened. */
export function requireFile(entry: HeldEntry, path: string, need: Need): void {
  if (entry.stats.isFile()) return;
  if (entry.stats.isSymbolicLink()) throw linkFault(path, entry.path, need);
  if (entry.stats.isDirectory()) throw refused(path, need.field, "EISDIR", "is a folder");
  throw refused(path, need.field, "ENOTSUP", "is a device, socket or pipe, which no tool opens");
}

/**
 * Refuses a file with more than one name (hard link): the others may lie outside of the roots, and no look at the file
 * shows where.
 */
export function requireOneName(entry: HeldEntry, path: string, need: Need): void {
  if (entry.stats.nlink <= 1) return;
  const why = `has ${entry.stats.nlink} names (hard links), of which some may lie outside the granted folders: make a copy`;
  throw outsideRoots(path, need.field, why);
}

function linkFault(path: string, link: string, need: Need): Error {
  return outsideRoots(path, need.field, `has a symbolic link in the way at ${link}: use the path that it stands for`);
}

/** A granted folder is the owner's word on where tools may act: neither it nor what holds one is deleted or moved. */
export function refuseRoots(path: string, granted: readonly { path: string }[], need: Need, done: string): void {
  const target = path.replace(/\/+$/, "");
  if (granted.some((root) => root.path === target || root.path.startsWith(`${target}/`)))
    throw outsideRoots(path, need.field, `is a granted folder, or holds one, and is not ${done}`);
}
