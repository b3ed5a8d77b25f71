import { type Dirent, lstatSync, rmdirSync, type Stats, unlinkSync } from "node:fs";
import { readdir } from "node:fs/promises";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { DeleteRequest, DeleteResponseSchema } from "../../../../gen/ts/reeve/tools/v1/file_system_pb.ts";
import type { HeldFolder } from "../../roots/held.ts";
import { asFault, refused, refuseRoots } from "../../roots/refusals.ts";
import type { HeldParent } from "../../roots/roots.ts";
import type { Change } from "../../undo/change.ts";
import type { UndoDraft } from "../../undo/journal.ts";
import { throwIfAborted } from "../outcome.ts";
import type { ToolContext } from "../tool.ts";
import { type Kept, keepFirst, pathIn } from "./keep.ts";
import { keepTree } from "./keep-tree.ts";
import { typeOf } from "./stat.ts";

const NEED = { access: "write", field: "path" } as const;

interface Deletion {
  context: ToolContext;
  /** The file system that the path is on: what is mounted below it stays. */
  device: number;
  deleted: number;
}

/**
 * fs.delete: a file, a symbolic link itself, or a folder. A folder with content is looked through first, so that nothing is
 * deleted where a secret, a granted folder or another file system is in it; what is looked at is held by descriptors, and
 * each name is checked once more before it is deleted. The earlier state is kept first.
 */
export async function deletePath(
  { path, recursive, permanent }: DeleteRequest,
  context: ToolContext,
): Promise<MessageInitShape<typeof DeleteResponseSchema>> {
  refuseRoots(path, context.roots.granted, NEED, "deleted");
  using place = context.roots.openParent(path, NEED);
  refuseRoots(pathIn(place.folder, place.name), context.roots.granted, NEED, "deleted");
  try {
    const stats = lstatSync(place.folder.at(place.name));
    const deletion: Deletion = { context, device: stats.dev, deleted: 0 };
    if (recursive && stats.isDirectory()) {
      await withChild(deletion, place.folder, place.name, (folder) => inspect(deletion, folder));
    }
    const kept: Kept = permanent
      ? { notUndoable: "the call asked for nothing to be kept" }
      : await keepFirst(context, (draft) => changesOf(place, context, recursive, draft));
    if (recursive && stats.isDirectory()) {
      await withChild(deletion, place.folder, place.name, (folder) => empty(deletion, folder));
    }
    remove(deletion, place.folder, place.name, stats);
    return { type: typeOf(stats), deleted: BigInt(deletion.deleted), ...kept };
  } catch (error: unknown) {
    if ((error as NodeJS.ErrnoException).code === "ENOTEMPTY")
      throw refused(
        path,
        NEED.field,
        "ENOTEMPTY",
        "is a folder that is not empty: recursive deletes what is in it",
        error,
      );
    throw asFault(error, path, NEED);
  }
}

/** What the call is about to take away. */
async function changesOf(
  { folder, name }: HeldParent,
  context: ToolContext,
  recursive: boolean,
  draft: UndoDraft,
): Promise<Change[]> {
  const kept = await keepTree(folder, name, { context, draft, recursive });
  return kept.map(({ path, before }) => ({ kind: "content", path, before, after: { kind: "missing" } }));
}

/** Refuses the whole deletion for anything in the folder that may not be touched. */
async function inspect(deletion: Deletion, folder: HeldFolder): Promise<void> {
  for (const { name } of await entriesOf(deletion, folder)) {
    const stats = allowed(deletion, folder, name);
    if (stats.isDirectory()) await withChild(deletion, folder, name, (child) => inspect(deletion, child));
  }
}

async function empty(deletion: Deletion, folder: HeldFolder): Promise<void> {
  for (const { name } of await entriesOf(deletion, folder)) {
    const stats = allowed(deletion, folder, name);
    if (stats.isDirectory()) await withChild(deletion, folder, name, (child) => empty(deletion, child));
    remove(deletion, folder, name, stats);
  }
}

async function entriesOf({ context }: Deletion, folder: HeldFolder): Promise<Dirent[]> {
  throwIfAborted(context);
  return readdir(folder.at(), { withFileTypes: true });
}

/** What the name is; throws where it may not be deleted. */
function allowed({ context, device }: Deletion, folder: HeldFolder, name: string): Stats {
  const path = pathIn(folder, name);
  context.roots.checkChild(folder, name, NEED);
  refuseRoots(path, context.roots.granted, NEED, "deleted");
  const stats = lstatSync(folder.at(name));
  if (stats.dev !== device)
    throw refused(path, NEED.field, "EXDEV", "is on another file system, which is mounted there");
  return stats;
}

async function withChild<T>(
  { context }: Deletion,
  folder: HeldFolder,
  name: string,
  action: (child: HeldFolder) => Promise<T>,
): Promise<T> {
  using child = context.roots.openChild(folder, name, NEED);
  return await action(child);
}

/** Removes the name. The kernel follows no symbolic link here: where one was put meanwhile, the link goes. */
function remove(deletion: Deletion, folder: HeldFolder, name: string, stats: Stats): void {
  if (stats.isDirectory()) rmdirSync(folder.at(name));
  else unlinkSync(folder.at(name));
  deletion.deleted++;
}
