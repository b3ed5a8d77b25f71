import { chmodSync, mkdirSync, rmdirSync, symlinkSync, unlinkSync } from "node:fs";
import { asFault } from "../../../roots/refusals.ts";
import type { HeldParent } from "../../../roots/roots.ts";
import type { Attributes, Before, Change } from "../../../undo/change.ts";
import type { UndoEntry } from "../../../undo/entry-file.ts";
import type { ToolContext } from "../../tool.ts";
import { changed } from "../changed.ts";
import { hasIdentity } from "../keep.ts";
import { rename } from "../move.ts";
import { createFile, replaceFileAt } from "../put-file.ts";
import { NEED, withPath } from "./held-place.ts";

/**
 * Puts back what a plan names: first removes what the call made, from the inside out, then makes what it removed, from the
 * outside in. Each path is walked to again, so a folder that was swapped for a link meanwhile is refused.
 */
export async function putBack(todo: readonly Change[], entry: UndoEntry, context: ToolContext): Promise<void> {
  for (const change of todo.toReversed())
    if (change.kind === "content" && change.before.kind === "missing") remove(change.path, change.after.kind, context);
  for (const change of todo) {
    if (change.kind === "move") await moveBack(change, entry, context);
    else await make(change.path, change.before, entry, context);
  }
  // At last, because a folder may be one that nothing can be made in.
  for (const change of todo.toReversed())
    if (change.kind === "content" && change.before.kind === "folder") dressFolder(change.path, change.before, context);
}

function remove(path: string, kind: string, { roots }: ToolContext): void {
  using place = roots.openParent(path, NEED);
  const at = place.folder.at(place.name);
  try {
    if (kind === "folder") rmdirSync(at);
    else unlinkSync(at);
  } catch (error: unknown) {
    throw asFault(error, path, NEED);
  }
}

async function make(path: string, before: Before, entry: UndoEntry, { roots }: ToolContext): Promise<void> {
  if (before.kind === "missing") return;
  using place = roots.openParent(path, NEED);
  try {
    const at = place.folder.at(place.name);
    if (before.kind === "folder") mkdirSync(at, 0o700);
    else if (before.kind === "link") symlinkSync(before.target, at);
    else await makeFile(place, await entry.content(before.piece), before);
  } catch (error: unknown) {
    throw asFault(error, path, NEED);
  }
}

async function makeFile(place: HeldParent, bytes: Uint8Array, attributes: Attributes): Promise<void> {
  using existing = place.look();
  // Where nothing is, nothing may be replaced that came meanwhile.
  if (existing === undefined) await createFile(place, bytes, attributes);
  else await replaceFileAt(place, bytes, attributes);
}

async function moveBack(
  { from, to, identity, replaced }: Extract<Change, { kind: "move" }>,
  entry: UndoEntry,
  context: ToolContext,
): Promise<void> {
  const isBack = await withPath(from, context.roots, async (found) => hasIdentity(found, identity));
  if (!isBack) {
    using source = context.roots.openParent(to, NEED);
    using moved = source.look();
    if (moved === undefined || !hasIdentity(moved, identity))
      throw changed(to, NEED.field, "is not as the call left it");
    using target = context.roots.openParent(from, NEED);
    rename(source, target, moved, { overwrite: false, need: [NEED, NEED] });
  }
  await make(to, replaced, entry, context);
}

function dressFolder(path: string, { mode }: Attributes, { roots }: ToolContext): void {
  using folder = roots.openFolder(path, NEED);
  chmodSync(folder.at(), mode);
}
