import { sql } from "kysely";
import type { Sealer } from "../../../lib/identity/sealer.ts";
import type { Database } from "../../../lib/store/database.ts";
import { prepared } from "../../../lib/store/prepared.ts";
import type { EndTable, ExecutionTable, LedgerTables } from "./schema.ts";

/** How an execution ended, as its row holds it. */
export type EndColumns = Omit<EndTable, "seq">;

/** An execution with its end, where it has one. */
export type ExecutionRow = ExecutionTable & { [Column in keyof EndColumns]: EndColumns[Column] | null };

/** Rows that one prune deletes at most: bounds how long it holds the writer. */
export const PRUNE_ROWS = 500;

/** How many of the newest calls are looked through for those of a principal. */
const NEWEST = 50_000;

/** The ledger's statements, compiled once. */
export function ledgerQueries(db: Database<LedgerTables>) {
  const whole = db
    .selectFrom("executions")
    .leftJoin("ends", "ends.seq", "executions.seq")
    .select(["executions.seq", "call_id", "grant_id", "tool", "args_digest", "start_ms", "principal_id"])
    .select(["state", "outcome", "reason", "end_ms", "finished", "output"]);
  const old = (beforeMs: number) =>
    db
      .selectFrom("ends")
      .select("seq")
      .where("end_ms", "<", beforeMs)
      .orderBy("end_ms")
      .orderBy("seq")
      .limit(PRUNE_ROWS);
  return {
    /** Changes no row where the call id or the grant id is known. */
    insert: prepared((p: ExecutionTable) =>
      db
        .insertInto("executions")
        .values({
          seq: p.seq,
          call_id: p.call_id,
          grant_id: p.grant_id,
          tool: p.tool,
          args_digest: p.args_digest,
          start_ms: p.start_ms,
          principal_id: p.principal_id,
        })
        .onConflict((conflict) => conflict.doNothing()),
    ),
    /** Changes no row where the call is not known, or has ended: the first end stays. */
    end: prepared((p: EndColumns & { call_id: string }) =>
      db
        .insertInto("ends")
        .columns(["seq", "state", "outcome", "reason", "end_ms", "finished", "output"])
        .expression(
          db
            .selectFrom("executions")
            .select(({ val }) => [
              "seq",
              val(p.state).as("state"),
              val(p.outcome).as("outcome"),
              val(p.reason).as("reason"),
              val(p.end_ms).as("end_ms"),
              val(p.finished).as("finished"),
              val(p.output).as("output"),
            ])
            .where("call_id", "=", p.call_id),
        )
        .onConflict((conflict) => conflict.doNothing()),
    ),
    find: prepared((p: { callId: string }) => whole.where("call_id", "=", p.callId)),
    /** The newest ones of a principal, or of all for an empty id, among the newest NEWEST. */
    newest: prepared((p: { principalId: string; limit: number }) =>
      whole
        .where("executions.seq", ">", ({ selectFrom }) =>
          selectFrom("executions").select(sql<number>`max(seq) - ${sql.lit(NEWEST)}`.as("seq")),
        )
        .where("tool", "not like", "job.%")
        .where(({ or, val, eb }) => or([eb(val(p.principalId), "=", ""), eb("principal_id", "=", p.principalId)]))
        .orderBy("executions.seq", "desc")
        .limit(p.limit),
    ),
    unended: prepared(() =>
      whole
        .where("executions.seq", ">", (settled) => settled.selectFrom("settled").select("seq"))
        .where("ends.seq", "is", null)
        .orderBy("executions.seq"),
    ),
    last: prepared(() =>
      db.selectNoFrom([
        sql<number>`max(coalesce((select max(seq) from executions), 0), (select seq from settled))`.as("seq"),
      ]),
    ),
    noteSettled: prepared((p: { seq: number }) => db.updateTable("settled").set({ seq: p.seq })),
    pruneExecutions: prepared((p: { beforeMs: number }) =>
      db.deleteFrom("executions").where("seq", "in", old(p.beforeMs)),
    ),
    pruneEnds: prepared((p: { beforeMs: number }) => db.deleteFrom("ends").where("seq", "in", old(p.beforeMs))),
  };
}

/** What a call's end is sealed as. */
export function contextOf(callId: string): string {
  return `ledger/${callId}`;
}

/** What the output of a call is sealed as. */
export function outputContextOf(callId: string): string {
  return `ledger/${callId}/output`;
}

/** Opens the newest end, so that another sealing key is found at the start. Throws SealError. */
export async function checkSealingKey(db: Database<LedgerTables>, sealer: Sealer): Promise<void> {
  const newest = await db
    .selectFrom("ends")
    .innerJoin("executions", "executions.seq", "ends.seq")
    .select(["call_id", "finished"])
    .orderBy("ends.seq", "desc")
    .limit(1)
    .executeTakeFirst();
  if (newest) sealer.open(contextOf(newest.call_id), newest.finished);
}
