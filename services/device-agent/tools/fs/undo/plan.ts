import { readdir } from "node:fs/promises";
import type { Change } from "../../../undo/change.ts";
import { throwIfAborted } from "../../outcome.ts";
import type { ToolContext } from "../../tool.ts";
import { changed } from "../changed.ts";
import { afterOf, hasIdentity, isStill } from "../keep.ts";
import { NEED, withPath } from "./held-place.ts";

/** The largest file that is compared, in bytes: the largest that is kept, and what one call can append to it. */
const LARGEST = 18 * 1024 * 1024;

/**
 * Those of a call's changes that have to be put back: the others are as they were before. Fault: PRECONDITION_CHANGED for a
 * path that is neither as the call left it nor as it was before.
 */
export async function planUndo(changes: readonly Change[], context: ToolContext): Promise<Change[]> {
  const todo: Change[] = [];
  const made = new Set(changes.map((change) => (change.kind === "content" ? change.path : change.to)));
  for (const change of changes) {
    throwIfAborted(context);
    const isDone =
      change.kind === "move" ? await isMoveDone(change, context) : await isContentDone(change, made, context);
    if (!isDone) todo.push(change);
  }
  return todo;
}

type Content = Extract<Change, { kind: "content" }>;
type Move = Extract<Change, { kind: "move" }>;

async function isContentDone(change: Content, made: ReadonlySet<string>, { roots }: ToolContext): Promise<boolean> {
  const { path, before, after } = change;
  return await withPath(path, roots, async (entry, place) => {
    const isAfter = await isStill(entry, after, LARGEST);
    // Both where a call changed nothing.
    if (await isStill(entry, afterOf(before), LARGEST)) return true;
    if (!isAfter) throw changed(path, NEED.field, "is not as the call left it");
    if (after.kind === "folder" && place !== undefined) {
      using folder = roots.openChild(place.folder, place.name, NEED);
      for (const name of await readdir(folder.at()))
        if (!made.has(`${path}/${name}`)) throw changed(`${path}/${name}`, NEED.field, "was made since");
    }
    return false;
  });
}

async function isMoveDone({ from, to, identity, replaced }: Move, { roots }: ToolContext): Promise<boolean> {
  const [isBack, isFree] = await withPath(from, roots, async (entry) => [
    hasIdentity(entry, identity),
    entry === undefined,
  ]);
  // Whatever has the other name by now is no part of this, unless an undo was cut off before it put that back, too.
  if (isBack) return replaced.kind === "missing" || !(await withPath(to, roots, async (entry) => entry === undefined));
  if (!isFree) throw changed(from, NEED.field, "names something else by now");
  if (await withPath(to, roots, async (entry) => hasIdentity(entry, identity))) return false;
  throw changed(to, NEED.field, "is not as the call left it");
}
