import type { NoteKey } from "../../../lib/sign/note.ts";
import type { Storage } from "../storage/storage.ts";
import { type Checkpointer, type CheckpointKeys, createCheckpointer } from "./checkpoints.ts";
import { createLogReader, type LogReader } from "./entries.ts";
import { type AuditLog, createAuditLog } from "./log.ts";
import type { ProofSources } from "./proofs.ts";
import { checkLogAtStart } from "./start-check.ts";
import { createTreeBuilder, createTreeStore } from "./tree.ts";

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
