import type { Sealer } from "../../../lib/identity/sealer.ts";
import type { Database } from "../../../lib/store/database.ts";
import type { LedgerTables } from "./schema.ts";

/** What a call's end is sealed as. */
export function contextOf(callId: string): string {
  return `ledger/${callId}`;
}

/** Opens the newest end, so that another sealing key is found at the start. Throws SealError. */
export async function checkSealingKey(db: Database<LedgerTables>, sealer: Sealer): Promise<void> {
  const newest = await db
    .selectFrom("executions")
    .select(["call_id", "finished"])
    .where("finished", "is not", null)
    .orderBy("end_ms", "desc")
    .orderBy("call_id", "desc")
    .limit(1)
    .executeTakeFirst();
  if (newest?.finished) sealer.open(contextOf(newest.call_id), newest.finished);
}
