import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { verifyCheckpointByAny } from "../../../lib/sign/checkpoint.ts";
import type { NoteKey } from "../../../lib/sign/note.ts";
import type { PolicyDatabase } from "../storage/tables.ts";
import type { TreeStore } from "./tree.ts";

/**
 * Compares the log with its newest checkpoint before anything is appended: its signature, that the log is at least as
 * long, and that the stored tree leads to the signed root. Takes as long as the tree is high, so a changed record in the
 * middle is left to `reeve audit verify`. Throws TAMPERED, and says what to do.
 */
export async function checkLogAtStart(db: PolicyDatabase, tree: TreeStore, keys: readonly NoteKey[]): Promise<void> {
  const newest = await db.selectFrom("checkpoints").select("note").orderBy("size", "desc").limit(1).executeTakeFirst();
  if (!newest) return;
  const verified = verifyCheckpointByAny(newest.note, keys);
  if (!verified.ok) {
    throw tampered("its newest checkpoint was not signed by any of its keys", "restore the database from a backup");
  }
  const { size, root } = verified.checkpoint;
  const held = await tree.size(db);
  if (held < size) {
    throw tampered(`it ends at ${held} records, but ${size} were signed`, "restore the database from a backup");
  }
  const stored = await tree.rootAt(db, size).catch(() => undefined);
  if (!stored || !Buffer.from(stored).equals(root)) {
    throw tampered(`its first ${size} records are not those that were signed`, "restore the database from a backup");
  }
}

function tampered(what: string, whatToDo: string): Error {
  const message =
    `the audit log has been changed: ${what}. Run \`reeve audit verify\` to see where; then ${whatToDo}, ` +
    "or keep this state folder as evidence and start with a new one.";
  return fault(ErrorReason.TAMPERED, { what: "audit log" }, { message });
}
