import { prepared, type QueryRunner } from "../../../lib/store/prepared.ts";
import type { PolicyDatabase, PolicyTables } from "../tables.ts";

/** What was decided about a call. */
export type DecisionRow = PolicyTables["decisions"];

/** The decisions of policy's database, by call id. */
export interface DecisionStore {
  find(on: QueryRunner, callId: string): Promise<DecisionRow | undefined>;
  /**
   * False, and nothing is inserted, where there is a decision under that key already, or where the call has ended.
   *
   * @param callId the call's own id: the row's may hold the number of a delivery as well.
   */
  insert(on: QueryRunner, row: DecisionRow, callId: string): Promise<boolean>;
}

/** The table decisions. */
export function createDecisionStore(db: PolicyDatabase): DecisionStore {
  const find = prepared((p: { callId: string }) =>
    db.selectFrom("decisions").selectAll().where("call_id", "=", p.callId),
  );
  const insert = prepared((p: DecisionRow & { ended: string }) =>
    db
      .insertInto("decisions")
      .columns(["call_id", "digest", "decision", "idx"])
      .expression(
        db
          .selectNoFrom(({ val }) => [
            val(p.call_id).as("call_id"),
            val(p.digest).as("digest"),
            val(p.decision).as("decision"),
            val(p.idx).as("idx"),
          ])
          .where(({ exists, not, selectFrom }) =>
            not(exists(selectFrom("outcomes").select("idx").where("call_id", "=", p.ended))),
          ),
      )
      .onConflict((conflict) => conflict.column("call_id").doNothing()),
  );
  return {
    find: (on, callId) => find.first(on, { callId }),
    insert: async (on, row, callId) => (await insert.run(on, { ...row, ended: callId })) === 1,
  };
}
