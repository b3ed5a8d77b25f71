import type { SigningKey } from "../../../lib/sign/keys.ts";
import type { NoteKey } from "../../../lib/sign/note.ts";
import type { RecordedWrites } from "../recorded-writes.ts";
import type { PolicyDatabase } from "../tables.ts";
import { type Checkpointer, createCheckpointer } from "./checkpoints.ts";
import { createLogReader, type LogReader } from "./entries.ts";
import { type AuditLog, createAuditLog } from "./log.ts";
import type { ProofSources } from "./proofs.ts";
import { checkLogAtStart } from "./start-check.ts";
import { createTreeBuilder } from "./tree-builder.ts";
import { createTreeStore } from "./tree-store.ts";

/** The audit log with everything that reads, proves and signs it. */
export interface Audit {
  log: AuditLog;
  reader: LogReader;
  checkpoints: Checkpointer;
  proofs: ProofSources;
}

/** What the audit log needs. */
export interface AuditOptions {
  db: PolicyDatabase;
  writes: RecordedWrites;
  /** Signs checkpoints. */
  key: SigningKey;
  /** Verifies them; its name is the log's origin. */
  noteKey: NoteKey;
  /** From an append to the checkpoint that covers it, in milliseconds. */
  delayMs: number;
  now: () => number;
  onError: (error: unknown) => void;
}

/** Opens the log. Rejects with TAMPERED where it does not agree with its newest checkpoint. */
export async function openAudit(options: AuditOptions): Promise<Audit> {
  const { db, writes, key, noteKey, delayMs, now, onError } = options;
  const tree = createTreeStore(db);
  const builder = createTreeBuilder(db, tree);
  const checkpoints = createCheckpointer({ db, writes, builder, key, origin: noteKey.name, delayMs, now, onError });
  await checkLogAtStart(db, tree, checkpoints, noteKey);
  await checkpoints.signNow();
  const log = createAuditLog(db, checkpoints.appended);
  const reader = createLogReader(db);
  return { log, reader, checkpoints, proofs: { db, tree, reader, checkpoints } };
}
