import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { ApprovalSpecSchema, ApprovalState } from "../../../gen/ts/reeve/approval/v1/approval_pb.ts";
import { every, type Repeated } from "../../../lib/async/every.ts";
import type { SealingKey } from "../../../lib/identity/seal.ts";
import { rewriteDatabase } from "../../../lib/store/rewrite.ts";
import type { RecordedWrites } from "../recorded-writes.ts";
import type { PolicyDatabase } from "../tables.ts";
import { openSpec, sealSpec } from "./approval-store.ts";
import { CUT_UNKNOWN } from "./settle.ts";

/** How long what approvals show is kept where the configuration says nothing, in milliseconds: 30 days. */
export const DEFAULT_RETENTION_MS = 30 * 24 * 3_600_000;

/** How often to look for what is to be deleted, in milliseconds. */
const INTERVAL_MS = 60_000;

/** How many approvals are changed in one transaction. */
const BATCH = 50;

/** What looking after the bodies of approvals needs. */
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

/** A card of a version before this, which showed the beginning of long values only. */
const CUT_BEFORE = /\[cut: /;

/**
 * Seals what a version before this kept in clear of approvals. Of one that is pending and whose card was cut nobody can read
 * the whole any more: it cannot be approved.
 */
export async function sealOldApprovals({ db, writes, sealing }: ApprovalRetentionOptions): Promise<void> {
  for (let isFirst = true; ; isFirst = false) {
    const rows = await db
      .selectFrom("approvals")
      .select(["id", "spec"])
      .where("whole_digest", "is", null)
      .limit(BATCH)
      .execute();
    if (rows.length === 0) return isFirst ? undefined : rewriteDatabase(db);
    await writes.write(async (trx) => {
      for (const { id, spec: bytes } of rows) {
        const spec = openSpec(sealing, { id, spec: bytes });
        const whole_digest = CUT_BEFORE.test(fromBinary(ApprovalSpecSchema, spec).card) ? CUT_UNKNOWN : "";
        const sealed = { spec: sealSpec(sealing, { id, spec }), whole_digest };
        await trx.updateTable("approvals").set(sealed).where("id", "=", id).execute();
      }
    });
  }
}

/**
 * Deletes arguments, card and purpose of approvals that were decided, once the retention is over, and what was asked about
 * calls that have ended, now and every minute. Digests, decisions and the audit log stay.
 */
export function keepApprovalRetention(options: ApprovalRetentionOptions): Repeated {
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
  return toBinary(ApprovalSpecSchema, create(ApprovalSpecSchema, { ...rest, card: "", purpose: "" }));
}
