import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { verifyCheckpointByAny } from "../../../lib/sign/checkpoint.ts";
import type { NoteKey } from "../../../lib/sign/note.ts";
import type { Storage } from "../storage/storage.ts";
import type { PolicyDatabase } from "../storage/tables.ts";
import { type Checkpointer, type CheckpointKeys, createCheckpointer } from "./checkpoints.ts";
import { createLogReader, type LogReader } from "./entries.ts";
import { type AuditLog, createAuditLog } from "./log.ts";
import type { ProofSources } from "./proofs.ts";
import { createTreeBuilder, createTreeStore, type TreeStore } from "./tree.ts";

/** The audit log with everything that reads, proves and signs it. */
export interface Audit {
  log: AuditLog;
  reader: LogReader;
  checkpoints: Checkpointer;
  proofs: ProofSources;
}

export interface AuditOptions {
  storage: Pick<Storage, "db" | "shared" | "writes" | "sequencer">;
  /** Sign checkpoints. */
  keys: CheckpointKeys;
  /** Verify the newest checkpoint at the start. */
  verifiers: readonly NoteKey[];
  /** From an append to the checkpoint that covers it, in milliseconds. */
  delayMs: number;
  now: () => number;
  onError: (error: unknown) => void;
}

/** Opens the log. Rejects with TAMPERED where it does not agree with its newest checkpoint. */
export async function openAudit({ storage, keys, verifiers, delayMs, now, onError }: AuditOptions): Promise<Audit> {
  const { db, shared, writes, sequencer } = storage;
  const tree = createTreeStore(db);
  const builder = createTreeBuilder(db, tree);
  await checkLogAtStart(db, tree, verifiers);
  const checkpoints = createCheckpointer({
    ...{ db, shared, writes, sequencer, tree, builder, keys },
    ...{ delayMs, now, onError },
  });
  if (sequencer.held) await checkpoints.covering();
  const log = createAuditLog(db, checkpoints.appended);
  const reader = createLogReader(db);
  return { log, reader, checkpoints, proofs: { db, tree, reader, checkpoints } };
}

/**
 * Compares the log with its newest checkpoint before anything is appended: its signature, that the log is at least as
 * long, and that the stored tree leads to the signed root. Takes as long as the tree is high, so a changed record in the
 * middle is left to `reeve audit verify`. Throws TAMPERED, and says what to do.
 */
async function checkLogAtStart(db: PolicyDatabase, tree: TreeStore, keys: readonly NoteKey[]): Promise<void> {
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
