import { ErrorReason } from "../../../../gen/ts/reeve/common/v1/error_pb.ts";
import {
  type DeleteRequest,
  type EditRequest,
  type FileSystem,
  type MoveRequest,
  type UndoRequest,
  WriteMode,
  type WriteRequest,
} from "../../../../gen/ts/reeve/tools/v1/file_system_pb.ts";
import { reasonOf } from "../../../../lib/fault/fault.ts";
import type { PreviewFact } from "../../../../lib/tool/preview.ts";
import { asFault } from "../../roots/refusals.ts";
import type { HeldParent } from "../../roots/roots.ts";
import { editOf } from "../fs/edit.ts";
import { readEntry } from "../fs/keep.ts";
import { planUndo } from "../fs/undo/plan.ts";
import type { ToolContext, ToolPreviews } from "../tool.ts";
import { diffFacts, factsOfPlace } from "./file-facts.ts";

const FILE = "file";

/** The largest file that is read for the lines of a change, in bytes. */
const LARGEST = 1024 * 1024;

/** What is at the paths of a call now, and the lines that it would change. */
export const fileSystemPreviews: ToolPreviews<typeof FileSystem> = {
  write: (input, context) => at(input.path, "path", context, (place) => writeFacts(input, place, context)),
  edit: (input, context) => at(input.path, "path", context, (place) => editFacts(input, place, context)),
  delete: ({ path }: DeleteRequest, context) =>
    at(path, "path", context, (place) => factsOfPlace(place, FILE, context)),
  move: moveFacts,
  undo: undoFacts,
};

/** Facts about a place, for which no folder is made. */
async function at(
  path: string,
  field: string,
  { roots }: ToolContext,
  facts: (place: HeldParent) => Promise<PreviewFact[]>,
): Promise<PreviewFact[]> {
  const need = { access: "write", field } as const;
  using place = roots.openParent(path, need);
  try {
    return await facts(place);
  } catch (error: unknown) {
    throw asFault(error, path, need);
  }
}

async function writeFacts(
  { text, data, mode }: WriteRequest,
  place: HeldParent,
  context: ToolContext,
): Promise<PreviewFact[]> {
  const facts = await factsOfPlace(place, FILE, context);
  using existing = place.look();
  if (existing?.stats.isFile() !== true || existing.stats.size > LARGEST || mode === WriteMode.CREATE) return facts;
  const before = await readEntry(existing, LARGEST);
  const bytes = data.length > 0 ? Buffer.from(data) : Buffer.from(text, "utf8");
  return [...facts, ...diffFacts(before, mode === WriteMode.APPEND ? Buffer.concat([before, bytes]) : bytes)];
}

async function editFacts(request: EditRequest, place: HeldParent, context: ToolContext): Promise<PreviewFact[]> {
  const facts = await factsOfPlace(place, FILE, context);
  return [...facts, ...diffFacts(...(await editOf(place, request)))];
}

async function moveFacts({ path, to }: MoveRequest, context: ToolContext): Promise<PreviewFact[]> {
  const moved = await at(path, "path", context, (place) => factsOfPlace(place, "what is moved", context));
  const target = await at(to, "to", context, (place) => factsOfPlace(place, "what has the new name", context)).catch(
    (error: unknown) => {
      if (reasonOf(error) !== ErrorReason.TARGET_NOT_FOUND) throw error;
      return [{ name: "what has the new name", value: "nothing: its folder does not exist" }];
    },
  );
  return [...moved, ...target];
}

async function undoFacts({ call }: UndoRequest, context: ToolContext): Promise<PreviewFact[]> {
  await using entry = await context.undo.find(call);
  if (entry === undefined) return [{ name: "earlier state", value: "nothing is kept of this call" }];
  // Where a path is not as the call left it this throws, and the undo would.
  const todo = await planUndo(entry.changes, context);
  const lines = todo.map((change) =>
    change.kind === "move"
      ? `${change.to} gets its earlier name ${change.from}`
      : `${change.path}: ${change.after.kind} becomes ${change.before.kind}`,
  );
  return [{ name: "puts back", value: lines.join("\n") || "nothing: all is as it was before the call" }];
}
