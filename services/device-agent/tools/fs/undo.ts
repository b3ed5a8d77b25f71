import type { MessageInitShape } from "@bufbuild/protobuf";
import { ErrorReason } from "../../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { UndoRequest, UndoResponseSchema } from "../../../../gen/ts/reeve/tools/v1/file_system_pb.ts";
import { fault } from "../../../../lib/fault/fault.ts";
import { asFault } from "../../roots/refusals.ts";
import { NotUndoable } from "../../undo/change.ts";
import type { UndoEntry } from "../../undo/entry-file.ts";
import { throwIfAborted } from "../outcome.ts";
import type { ToolContext } from "../tool.ts";
import { changed } from "./changed.ts";
import { keepFirst } from "./keep.ts";
import { NEED } from "./undo/held-place.ts";
import { planUndo } from "./undo/plan.ts";
import { putBack } from "./undo/put-back.ts";
import { redoChanges } from "./undo/redo.ts";

/** How many paths an answer names. */
const NAMED_PATHS = 100;

/**
 * fs.undo: puts back what a call changed. All paths are looked at first, by the roots as they are granted now; only where each
 * is as the call left it, or as it was before, anything is changed. So a call that was cut off can be undone as well.
 */
export async function undoCall(
  { call }: UndoRequest,
  context: ToolContext,
): Promise<MessageInitShape<typeof UndoResponseSchema>> {
  await using entry = await context.undo.find(call);
  if (entry === undefined) {
    const message = `nothing is kept of the call ${call}: it changed no file by a tool, asked for nothing to be kept, or is too long ago`;
    throw fault(ErrorReason.TARGET_NOT_FOUND, { field: "call" }, { message });
  }
  try {
    return await undoEntry(entry, context);
  } catch (error: unknown) {
    if (error instanceof NotUndoable) throw changed(call, NEED.field, `cannot be compared: ${error.message}`);
    throw asFault(error, call, NEED);
  }
}

async function undoEntry(entry: UndoEntry, context: ToolContext): Promise<MessageInitShape<typeof UndoResponseSchema>> {
  const todo = await planUndo(entry.changes, context);
  if (todo.length === 0) return {};
  const kept = await keepFirst(context, (draft) => redoChanges(todo, draft, context));
  throwIfAborted(context);
  await putBack(todo, entry, context);
  const paths = todo.map((change) => (change.kind === "move" ? change.from : change.path));
  return { paths: paths.slice(0, NAMED_PATHS), changed: BigInt(todo.length), ...kept };
}
