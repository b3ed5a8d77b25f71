import type { KeyRing } from "../keys/key-ring.ts";
import type { Storage } from "../storage.ts";
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
  storage: Pick<Storage, "db" | "shared" | "writes" | "sequencer">;
  /** Sign and verify checkpoints; they know the log's name. */
  keys: KeyRing;
  /** From an append to the checkpoint that covers it, in milliseconds. */
  delayMs: number;
  now: () => number;
  onError: (error: unknown) => void;
}

/** Opens the log. Rejects with TAMPERED where it does not agree with its newest checkpoint. */
export async function openAudit({ storage, keys, delayMs, now, onError }: AuditOptions): Promise<Audit> {
  const { db, shared, writes, sequencer } = storage;
  const tree = createTreeStore(db);
  const builder = createTreeBuilder(db, tree);
  await checkLogAtStart(db, tree, keys.current().checkpointKeys);
  const checkpoints = createCheckpointer({
    ...{ db, shared, writes, sequencer, tree, builder, keys },
    ...{ delayMs, now, onError },
  });
  if (sequencer.held) await checkpoints.covering();
  const log = createAuditLog(db, checkpoints.appended);
  const reader = createLogReader(db);
  return { log, reader, checkpoints, proofs: { db, tree, reader, checkpoints } };
}
