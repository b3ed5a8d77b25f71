import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { configSettings } from "../../../gen/settings/settings.ts";
import { ApprovalSpecSchema, ApprovalState } from "../../../gen/ts/reeve/approval/v1/approval_pb.ts";
import { every, type Repeated } from "../../../lib/async/every.ts";
import type { SealingKey } from "../../../lib/identity/seal.ts";
import type { RecordedWrites } from "../storage/recorded-writes.ts";
import type { PolicyDatabase } from "../storage/tables.ts";
import { openSpec, sealSpec } from "./approval-store.ts";

/** How long arguments and summaries of approvals are kept where the configuration says nothing, in milliseconds: 30 days. */
export const DEFAULT_RETENTION_MS = configSettings.callRetention.default;

/** How often to look for what is to be deleted, in milliseconds. */
const INTERVAL_MS = 60_000;

/** How many approvals are changed in one transaction. */
const BATCH = 50;

export interface ApprovalRetentionOptions {
  db: PolicyDatabase;
  writes: RecordedWrites;
  sealing: SealingKey;
  /** From when the call was held. */
  retentionMs: number;
  now: () => number;
  /** False where another replica does it. */
  mayRun: () => boolean;
  onError: (error: unknown) => void;
}

/**
 * Deletes arguments, summary and purpose of approvals that were decided, once the retention is over, and what was asked about
 * calls that have ended, now and every minute. Digests, decisions and the audit log stay.
 */
export function startApprovalRetention(options: ApprovalRetentionOptions): Repeated {
  const { db, writes, sealing, retentionMs, now, mayRun, onError } = options;
  const deleteBodies = async (): Promise<void> => {
    for (let count = BATCH; count === BATCH && mayRun(); ) {
      const rows = await db
        .selectFrom("approvals")
        .select(["id", "spec"])
        .where("create_ms", "<=", now() - retentionMs)
        .where("bodies_delete_ms", "is", null)
        .where("state", "!=", ApprovalState.PENDING)
        .limit(BATCH)
        .execute();
      count = rows.length;
      if (count === 0) return;
      await writes.write(async (trx) => {
        for (const row of rows) {
          const spec = withoutBodies(openSpec(sealing, row));
          const emptied = { spec: sealSpec(sealing, { id: row.id, spec }), bodies_delete_ms: now() };
          await trx.updateTable("approvals").set(emptied).where("id", "=", row.id).execute();
          await trx.deleteFrom("approval_requests").where("approval_id", "=", row.id).execute();
        }
      });
    }
  };
  const deleteRequests = async (): Promise<void> => {
    if (!mayRun()) return;
    const over = await db
      .selectFrom("approval_requests")
      .innerJoin("outcomes", "outcomes.call_id", "approval_requests.call_id")
      .select("approval_requests.approval_id as id")
      .execute();
    if (over.length === 0) return;
    const ids = over.map(({ id }) => id);
    await writes.write((trx) => trx.deleteFrom("approval_requests").where("approval_id", "in", ids).execute());
  };
  return every(
    INTERVAL_MS,
    async () => {
      await deleteRequests();
      await deleteBodies();
    },
    onError,
  );
}

function withoutBodies(bytes: Uint8Array): Uint8Array {
  const { arguments: _arguments, ...rest } = fromBinary(ApprovalSpecSchema, bytes);
  return toBinary(ApprovalSpecSchema, create(ApprovalSpecSchema, { ...rest, summary: "", purpose: "" }));
}
