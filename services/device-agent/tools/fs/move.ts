import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  renameSync,
  rmdirSync,
  unlinkSync,
} from "node:fs";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { MoveRequest, MoveResponseSchema } from "../../../../gen/ts/reeve/tools/v1/file_system_pb.ts";
import type { HeldEntry } from "../../roots/held.ts";
import type { Need } from "../../roots/lexical.ts";
import { asFault, refused, refuseRoots, requireFile, requireOneName } from "../../roots/refusals.ts";
import type { HeldParent } from "../../roots/roots.ts";
import type { ToolContext } from "../tool.ts";
import { identityOf, keepEntry, keepFirst, pathIn } from "./keep.ts";
import { requireMovableTree } from "./movable-tree.ts";
import { typeOf } from "./stat.ts";

const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;

const FROM = { access: "write", field: "path" } as const;
const TO = { access: "write", field: "to" } as const;

/**
 * fs.move: renames a file or folder from one held folder to another. A folder is looked through first: by its new path a
 * secret in it would not be known as one any more. Symbolic links are not moved: what follows one would be sent elsewhere.
 */
export async function movePath(
  request: MoveRequest,
  context: ToolContext,
): Promise<MessageInitShape<typeof MoveResponseSchema>> {
  try {
    return await move(request, context);
  } catch (error: unknown) {
    throw asFault(error, request.path, FROM);
  }
}

async function move(
  { path, to, overwrite, createFolders }: MoveRequest,
  context: ToolContext,
): Promise<MessageInitShape<typeof MoveResponseSchema>> {
  const { roots } = context;
  refuseRoots(path, roots.granted, FROM, "moved");
  refuseRoots(to, roots.granted, TO, "replaced");
  using source = roots.openParent(path, FROM);
  using moved = existing(source, FROM);
  requireMovable(moved, path);
  using target = roots.openParent(to, { ...TO, createFolders });
  const [from, into] = [pathIn(source.folder, source.name), pathIn(target.folder, target.name)];
  refuseRoots(from, roots.granted, FROM, "moved");
  if (moved.stats.isDirectory()) {
    if (`${into}/`.startsWith(`${from}/`))
      throw refused(to, TO.field, "EINVAL", "lies in the folder that is to be moved");
    await requireMovableTree(source, into, { context, device: moved.stats.dev });
  }
  using replaced = replaceable(target, moved, overwrite);
  const kept = await keepFirst(context, async (draft) => {
    const { before } = await keepEntry(replaced, draft);
    return [{ kind: "move", from, to: into, identity: identityOf(moved.stats), replaced: before }];
  });
  rename(source, target, moved, { overwrite: replaced !== undefined });
  return { type: typeOf(moved.stats), replaced: replaced !== undefined, ...kept };
}

/**
 * Gives what is held another name. Without `overwrite` the new name is reserved first, by an empty file or folder that only
 * this call can have made, because a rename alone replaces what has the name. Faults: OS_REFUSED{field,errno}.
 *
 * @param need what the two paths are for, which a fault names. Default: those of fs.move.
 */
export function rename(
  source: HeldParent,
  target: HeldParent,
  moved: HeldEntry,
  { overwrite, need: [fromNeed, toNeed] = [FROM, TO] }: { overwrite: boolean; need?: readonly [Need, Need] },
): void {
  const [from, into] = [source.folder.at(source.name), target.folder.at(target.name)];
  const release = overwrite ? () => undefined : reserve(target, into, moved.stats.isDirectory(), toNeed);
  try {
    renameSync(from, into);
  } catch (error: unknown) {
    release();
    if ((error as NodeJS.ErrnoException).code === "EXDEV")
      throw refused(
        target.path,
        toNeed.field,
        "EXDEV",
        "is on another file system: copy it there and delete it here",
        error,
      );
    throw asFault(error, source.path, fromNeed);
  }
}

/** Takes a free name. What it returns gives the name back, unless something else has it by then. */
function reserve(target: HeldParent, into: string, isFolder: boolean, need: Need): () => void {
  try {
    if (isFolder) {
      mkdirSync(into, 0o700);
      return () => quietly(() => rmdirSync(into));
    }
    const fd = openSync(into, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
    const { ino } = fstatSync(fd);
    closeSync(fd);
    return () => quietly(() => lstatSync(into).ino === ino && unlinkSync(into));
  } catch (error: unknown) {
    throw asFault(error, target.path, need);
  }
}

/** What fails here is no news: the move has failed already. */
function quietly(action: () => unknown): void {
  try {
    action();
  } catch {
    // The name is not this call's any more.
  }
}

function existing(place: HeldParent, need: typeof FROM): HeldEntry {
  const entry = place.look();
  if (entry !== undefined) return entry;
  throw asFault(Object.assign(new Error(place.path), { code: "ENOENT" }), place.path, need);
}

function requireMovable(entry: HeldEntry, path: string): void {
  if (entry.stats.isDirectory()) return;
  requireFile(entry, path, FROM);
  requireOneName(entry, path, FROM);
}

/** What has the new name, where it may be replaced. Throws OS_REFUSED where it may not. */
function replaceable(target: HeldParent, moved: HeldEntry, overwrite: boolean): HeldEntry | undefined {
  const entry = target.look();
  if (entry === undefined) return undefined;
  try {
    if (!overwrite) throw refused(target.path, TO.field, "EEXIST", "exists already: overwrite replaces a file");
    requireFile(entry, target.path, TO);
    requireOneName(entry, target.path, TO);
    if (!moved.stats.isFile()) throw refused(target.path, TO.field, "ENOTDIR", "is a file, which no folder replaces");
    return entry;
  } catch (error: unknown) {
    entry[Symbol.dispose]();
    throw error;
  }
}
