import { sql } from "kysely";
import { type CallState, CallStateSchema } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { prepared, type QueryRunner } from "../../../lib/store/prepared.ts";
import { forRows } from "../../../lib/store/rows.ts";
import type { PolicyDatabase, PolicyTables } from "../storage/tables.ts";

/** How a call ended: the digest of its outcome, and where the record is. */
export type OutcomeRow = PolicyTables["outcomes"];

/** The ends of calls, by call id. */
export interface OutcomeStore {
  /** Undefined while the call has not ended. */
  find(on: QueryRunner, callId: string): Promise<OutcomeRow | undefined>;
  insert(on: QueryRunner, row: OutcomeRow): Promise<void>;
  /** The same for many calls, on PostgreSQL. */
  findAll(on: QueryRunner, callIds: readonly string[]): Promise<OutcomeRow[]>;
  insertAll(on: QueryRunner, rows: readonly OutcomeRow[]): Promise<void>;
}

/** The table outcomes. */
export function createOutcomeStore(db: PolicyDatabase): OutcomeStore {
  const find = prepared((p: { callId: string }) =>
    db.selectFrom("outcomes").selectAll().where("call_id", "=", p.callId),
  );
  const insert = prepared((p: OutcomeRow) =>
    db.insertInto("outcomes").values({ call_id: p.call_id, digest: p.digest, state: p.state, idx: p.idx }),
  );
  const findAll = forRows<{ id: string }, OutcomeRow>(
    db,
    { id: "text" },
    (given) => sql`select outcomes.* from ${given} join outcomes on outcomes.call_id = given.id`,
  );
  const insertAll = forRows<OutcomeRow, never>(
    db,
    { call_id: "text", digest: "text", state: "text", idx: "bigint" },
    (given) => sql`insert into outcomes (call_id, digest, state, idx) select call_id, digest, state, idx from ${given}`,
  );
  return {
    findAll: (on, callIds) =>
      findAll(
        on,
        callIds.map((id) => ({ id })),
      ),
    insertAll: async (on, rows) => void (await insertAll(on, rows)),
    find: (on, callId) => find.first(on, { callId }),
    insert: async (on, row) => void (await insert.run(on, row)),
  };
}

/** The name of an end, such as "SUCCEEDED", in rows and errors. */
export function endState(state: CallState): string {
  return CallStateSchema.value[state]?.localName ?? String(state);
}
