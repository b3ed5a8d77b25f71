import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { prepared, type QueryRunner } from "../../../lib/store/prepared.ts";
import type { PolicyDatabase, PolicyTables } from "../tables.ts";

/** How a call ended: the digest of its outcome, and where the record is. */
export type OutcomeRow = PolicyTables["outcomes"];

/** The ends of calls, by call id. */
export interface OutcomeStore {
  /** Undefined while the call has not ended. */
  find(on: QueryRunner, callId: string): Promise<OutcomeRow | undefined>;
  insert(on: QueryRunner, row: OutcomeRow): Promise<void>;
}

/** The table outcomes. */
export function createOutcomeStore(db: PolicyDatabase): OutcomeStore {
  const find = prepared((p: { callId: string }) =>
    db.selectFrom("outcomes").selectAll().where("call_id", "=", p.callId),
  );
  const insert = prepared((p: OutcomeRow) =>
    db.insertInto("outcomes").values({ call_id: p.call_id, digest: p.digest, state: p.state, idx: p.idx }),
  );
  return {
    find: (on, callId) => find.first(on, { callId }),
    insert: async (on, row) => void (await insert.run(on, row)),
  };
}

/** The fault CALL_ENDED: nothing follows a call's end. */
export function callEnded({ call_id, state }: Pick<OutcomeRow, "call_id" | "state">): Error {
  return fault(ErrorReason.CALL_ENDED, { call_id, state }, { message: `the call has ended already: ${state}` });
}
