import { prepared, type QueryRunner } from "../../../lib/store/prepared.ts";
import type { PolicyDatabase, PolicyTables } from "../tables.ts";

/** What was decided about a call. */
export type DecisionRow = PolicyTables["decisions"];

/** The decisions of policy's database, by call id. */
export interface DecisionStore {
  find(on: QueryRunner, callId: string): Promise<DecisionRow | undefined>;
  /** False, and nothing is inserted, where the call has a decision already. */
  insert(on: QueryRunner, row: DecisionRow): Promise<boolean>;
}

/** The table decisions. */
export function createDecisionStore(db: PolicyDatabase): DecisionStore {
  const find = prepared((p: { callId: string }) =>
    db.selectFrom("decisions").selectAll().where("call_id", "=", p.callId),
  );
  const insert = prepared((p: DecisionRow) =>
    db
      .insertInto("decisions")
      .values({ call_id: p.call_id, digest: p.digest, decision: p.decision, idx: p.idx })
      .onConflict((conflict) => conflict.column("call_id").doNothing()),
  );
  return {
    find: (on, callId) => find.first(on, { callId }),
    insert: async (on, row) => (await insert.run(on, row)) === 1,
  };
}
