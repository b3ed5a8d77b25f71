import { closeSync, constants, read as readCallback, type Stats } from "node:fs";
import { promisify } from "node:util";
import { sha256Hex } from "../../../../lib/sign/canonical.ts";
import type { HeldEntry, HeldFolder } from "../../roots/held.ts";
import {
  type After,
  type Attributes,
  type Before,
  type Change,
  type Identity,
  NotUndoable,
} from "../../undo/change.ts";
import type { UndoDraft } from "../../undo/journal.ts";
import type { ToolContext } from "../tool.ts";

const read = promisify(readCallback);

/** The part of an output that says whether the call can be undone. Empty where it can. */
export interface Kept {
  notUndoable?: string;
}

/**
 * Keeps what a call is about to change, on the disk before this resolves. Where it cannot be kept the call goes on, and its
 * output says why it cannot be undone. Rejects with what `collect` throws besides.
 */
export async function keepFirst(
  { undo, callId }: Pick<ToolContext, "undo" | "callId">,
  collect: (draft: UndoDraft) => Promise<readonly Change[]>,
): Promise<Kept> {
  let draft: UndoDraft | undefined;
  try {
    draft = await undo.begin(callId);
    await draft.commit(await collect(draft));
    return {};
  } catch (error: unknown) {
    if (error instanceof NotUndoable) return { notUndoable: error.message };
    const { code } = error as NodeJS.ErrnoException;
    // Of Node and the operating system; a fault has a code that is a number.
    if (typeof code === "string") return { notUndoable: `the earlier state could not be kept (${code})` };
    throw error;
  } finally {
    await draft?.discard();
  }
}

/** What is kept of one path, and the content where it is a file. */
export interface Snapshot {
  before: Before;
  bytes: Uint8Array;
}

const NOTHING = new Uint8Array();

/**
 * Keeps what a held entry is. A file with several names is not kept: what was put back would have one name, and so could be
 * read where the other names lie outside of the roots.
 */
export async function keepEntry(entry: HeldEntry | undefined, draft: UndoDraft): Promise<Snapshot> {
  if (entry === undefined) return { before: { kind: "missing" }, bytes: NOTHING };
  const { stats, path, linkTarget } = entry;
  if (stats.isSymbolicLink()) return { before: { kind: "link", target: linkTarget }, bytes: NOTHING };
  const attributes = attributesOf(stats);
  if (stats.isDirectory()) return { before: { kind: "folder", ...attributes }, bytes: NOTHING };
  if (!stats.isFile()) throw new NotUndoable(`${path} is a device, socket or pipe, which is not kept`);
  if (stats.nlink > 1) throw new NotUndoable(`${path} has several names (hard links), and is not kept`);
  const bytes = await readEntry(entry, draft.bounds.fileBytes);
  const before: Before = { kind: "file", sha256: sha256Hex(bytes), piece: await draft.keep(bytes), ...attributes };
  return { before, bytes };
}

/** What a path has to name for an undo, where a call has put this there. */
export function afterOf(thing: Before): After {
  switch (thing.kind) {
    case "file":
      return { kind: "file", sha256: thing.sha256 };
    case "folder":
      return { kind: "folder" };
    default:
      return thing;
  }
}

/** Whether a held entry is what a call left. */
export async function isStill(entry: HeldEntry | undefined, expected: After, fileBytes: number): Promise<boolean> {
  if (entry === undefined) return expected.kind === "missing";
  const { stats, linkTarget } = entry;
  if (stats.isSymbolicLink()) return expected.kind === "link" && expected.target === linkTarget;
  if (stats.isDirectory()) return expected.kind === "folder";
  if (!stats.isFile() || expected.kind !== "file" || stats.size > fileBytes) return false;
  return sha256Hex(await readEntry(entry, fileBytes)) === expected.sha256;
}

/** Which file or folder it is. Its name, and so the time of its last change of any kind, does not matter. */
export function identityOf(stats: Stats): Identity {
  const content = stats.isDirectory() ? undefined : ([stats.size, stats.mtimeMs] as const);
  return { dev: stats.dev, ino: stats.ino, content };
}

/** Whether a held entry is that very file, unchanged, or that very folder. */
export function hasIdentity(entry: HeldEntry | undefined, identity: Identity): boolean {
  if (entry === undefined) return false;
  const found = identityOf(entry.stats);
  const isSame = found.dev === identity.dev && found.ino === identity.ino;
  return isSame && found.content?.join() === identity.content?.join();
}

/** The real path of a name in a held folder. */
export function pathIn(folder: HeldFolder, name: string): string {
  return folder.path === "/" ? `/${name}` : `${folder.path}/${name}`;
}

/** All of a regular file. Rejects with NotUndoable where it is larger than that. */
export async function readEntry(entry: HeldEntry, limit: number): Promise<Buffer> {
  if (entry.stats.size > limit) throw new NotUndoable(`${entry.path} is larger than ${limit} bytes`);
  const fd = entry.open(constants.O_RDONLY);
  try {
    // One byte more than it had shows that it has grown.
    const buffer = Buffer.allocUnsafeSlow(entry.stats.size + 1);
    let filled = 0;
    for (;;) {
      const { bytesRead } = await read(fd, buffer, filled, buffer.length - filled, filled);
      if (bytesRead === 0) return buffer.subarray(0, filled);
      filled += bytesRead;
      if (filled === buffer.length) throw new NotUndoable(`${entry.path} was written to meanwhile`);
    }
  } finally {
    closeSync(fd);
  }
}

/** The permission bits and the owner of what was looked at. */
export function attributesOf({ mode, uid, gid }: Stats): Attributes {
  return { mode: mode & 0o7777, uid, gid };
}
