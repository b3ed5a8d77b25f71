import { type Change, NotUndoable } from "../../../undo/change.ts";
import type { UndoDraft } from "../../../undo/journal.ts";
import type { ToolContext } from "../../tool.ts";
import { afterOf, keepEntry } from "../keep.ts";
import { withPath } from "./held-place.ts";

/** The changes that an undo will make, with what they take away. Rejects with NotUndoable where that cannot be kept. */
export async function redoChanges(
  todo: readonly Change[],
  draft: UndoDraft,
  { roots }: ToolContext,
): Promise<Change[]> {
  const redo: Change[] = [];
  for (const change of todo) {
    if (change.kind === "move") {
      const { from, to, identity, replaced } = change;
      if (replaced.kind !== "missing") throw new NotUndoable("the call had replaced a file, and it cannot do so again");
      redo.push({ kind: "move", from: to, to: from, identity, replaced });
      continue;
    }
    const { before } = await withPath(change.path, roots, (entry) => keepEntry(entry, draft));
    redo.push({ kind: "content", path: change.path, before, after: afterOf(change.before) });
  }
  return redo;
}
