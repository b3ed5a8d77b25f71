import { isSealed } from "../../../lib/identity/seal.ts";
import type { Sealer } from "../../../lib/identity/sealer.ts";
import type { Database } from "../../../lib/store/database.ts";
import type { GroupCommit } from "../../../lib/store/group-commit.ts";
import { rewriteDatabase } from "../../../lib/store/rewrite.ts";
import type { LedgerTables } from "./schema.ts";

/** How many rows are looked at in one transaction. */
const BATCH = 200;

/** What a call's end is sealed as. */
export function contextOf(callId: string): string {
  return `ledger/${callId}`;
}

async function sealBatch(trx: Database<LedgerTables>, ids: readonly string[], sealer: Sealer): Promise<void> {
  const rows = await trx.selectFrom("executions").select(["call_id", "finished"]).where("call_id", "in", ids).execute();
  for (const { call_id, finished } of rows) {
    if (finished === null || isSealed(finished)) continue;
    const sealed = sealer.seal(contextOf(call_id), finished);
    await trx.updateTable("executions").set({ finished: sealed }).where("call_id", "=", call_id).execute();
  }
}

/**
 * Seals the ends that a version wrote which did not, and rewrites the file, so that no page of it holds them any more. One
 * row that is sealed says that all are: its key is checked instead. Throws SealError.
 */
export async function sealOldEnds(
  db: Database<LedgerTables>,
  writes: GroupCommit<LedgerTables>,
  sealer: Sealer,
): Promise<void> {
  const newest = await db
    .selectFrom("executions")
    .select(["call_id", "finished"])
    .where("finished", "is not", null)
    .orderBy("end_ms", "desc")
    .orderBy("call_id", "desc")
    .limit(1)
    .executeTakeFirst();
  if (newest?.finished == null) return;
  if (isSealed(newest.finished)) return void sealer.open(contextOf(newest.call_id), newest.finished);
  const ended = await db
    .selectFrom("executions")
    .select("call_id")
    .where("finished", "is not", null)
    .orderBy("end_ms")
    .orderBy("call_id")
    .execute();
  // The newest comes last: once it is sealed, so are all others, also where this was cut off in between.
  for (let at = 0; at < ended.length; at += BATCH) {
    const ids = ended.slice(at, at + BATCH).map(({ call_id }) => call_id);
    await writes.write((trx) => sealBatch(trx, ids, sealer));
  }
  await rewriteDatabase(db);
}
