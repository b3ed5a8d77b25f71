import { readdir } from "node:fs/promises";
import type { HeldFolder } from "../../roots/held.ts";
import { type Before, NotUndoable } from "../../undo/change.ts";
import type { UndoDraft } from "../../undo/journal.ts";
import { throwIfAborted } from "../outcome.ts";
import type { ToolContext } from "../tool.ts";
import { keepEntry, pathIn } from "./keep.ts";

/** What a path was before. */
export interface KeptPath {
  path: string;
  before: Before;
}

interface Options {
  context: ToolContext;
  draft: UndoDraft;
  /** Keep what is in a folder too. */
  recursive: boolean;
}

const NEED = { access: "write", field: "path" } as const;

/** Keeps a file, link or folder; a folder before what is in it. Rejects with NotUndoable where anything of it cannot be kept. */
export async function keepTree(folder: HeldFolder, name: string, options: Options): Promise<KeptPath[]> {
  const kept: KeptPath[] = [];
  await keepInto(kept, folder, name, options);
  return kept;
}

async function keepInto(kept: KeptPath[], folder: HeldFolder, name: string, options: Options): Promise<void> {
  const { context, draft, recursive } = options;
  throwIfAborted(context);
  using entry = context.roots.lookChild(folder, name, NEED);
  const { before } = await keepEntry(entry, draft);
  kept.push({ path: pathIn(folder, name), before });
  if (kept.length > draft.bounds.callThings)
    throw new NotUndoable(`takes away more than ${draft.bounds.callThings} files and folders`);
  if (before.kind !== "folder" || !recursive) return;
  using child = context.roots.openChild(folder, name, NEED);
  for (const inner of (await readdir(child.at())).sort()) await keepInto(kept, child, inner, options);
}
