import type { Sealer } from "../../../lib/identity/sealer.ts";
import type { Database } from "../../../lib/store/database.ts";
import { prepared } from "../../../lib/store/prepared.ts";
import type { ExecutionTable, LedgerTables } from "./schema.ts";

/** How an execution ended, as its row holds it. */
export type EndColumns = Pick<ExecutionTable, "call_id" | "state" | "outcome" | "reason" | "end_ms" | "finished">;

/** Rows that one prune deletes at most: bounds how long it holds the writer. */
export const PRUNE_ROWS = 500;

/** The ledger's statements, compiled once. */
export function ledgerQueries(db: Database<LedgerTables>) {
  return {
    /** Changes no row where the call id or the grant id is known. */
    insert: prepared((p: ExecutionTable) =>
      db
        .insertInto("executions")
        .values({
          call_id: p.call_id,
          grant_id: p.grant_id,
          tool: p.tool,
          args_digest: p.args_digest,
          state: p.state,
          outcome: p.outcome,
          reason: p.reason,
          start_ms: p.start_ms,
          end_ms: p.end_ms,
          finished: p.finished,
        })
        .onConflict((conflict) => conflict.doNothing()),
    ),
    /** Changes no row where the call has ended: the first end stays. */
    end: prepared((p: EndColumns) =>
      db
        .updateTable("executions")
        .set({ state: p.state, outcome: p.outcome, reason: p.reason, end_ms: p.end_ms, finished: p.finished })
        .where("call_id", "=", p.call_id)
        .where("state", "=", "started"),
    ),
    find: prepared((p: { callId: string }) => db.selectFrom("executions").selectAll().where("call_id", "=", p.callId)),
    unended: prepared(() => db.selectFrom("executions").selectAll().where("end_ms", "is", null)),
    prune: prepared((p: { beforeMs: number }) =>
      db
        .deleteFrom("executions")
        .where("call_id", "in", (old) =>
          old.selectFrom("executions").select("call_id").where("end_ms", "<", p.beforeMs).limit(PRUNE_ROWS),
        ),
    ),
  };
}

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
