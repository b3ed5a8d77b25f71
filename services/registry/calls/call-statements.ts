import { type SqlBool, sql } from "kysely";
import type { Database } from "../../../lib/store/database.ts";
import { prepared } from "../../../lib/store/prepared.ts";
import { forRows } from "../../../lib/store/rows.ts";
import type { RegistryTables } from "../tables.ts";

/** A new call. */
export interface InsertRow {
  id: string;
  device_id: string;
  tool: string;
  principal_id: string;
  state: number;
  args: Uint8Array;
  shown: Uint8Array | null;
  call: Uint8Array;
}

/** A call's new state. */
export interface StateRow {
  id: string;
  state: number;
  call: Uint8Array;
  /** The states that the row may be in for this one to be written over it, a bit each: see the lifecycle. */
  before: number;
}

/** A call's end. */
export interface EndRow extends StateRow {
  result: Uint8Array | null;
  outcome: Uint8Array | null;
  pending: number;
  kept_from_ms: number | null;
}

/** The audit log has a call's outcome. */
export interface AcknowledgedRow {
  id: string;
  idx: number;
  now_ms: number;
}

/** How one row of the table calls is written. */
export function callStatements(db: Database<RegistryTables>, owner: string) {
  const isIn = (states: number) => sql<SqlBool>`((cast(${states} as integer) >> state) & 1) = 1`;
  return {
    insert: prepared((p: InsertRow) =>
      db
        .insertInto("calls")
        .values({
          id: p.id,
          device_id: p.device_id,
          tool: p.tool,
          principal_id: p.principal_id,
          state: p.state,
          ended: 0,
          args: p.args,
          shown: p.shown,
          call: p.call,
          owner,
        })
        .onConflict((conflict) => conflict.column("id").doNothing()),
    ),
    update: prepared((p: StateRow) =>
      db
        .updateTable("calls")
        .set({ state: p.state, call: p.call })
        .where("id", "=", p.id)
        .where(isIn(p.before))
        .where("owner", "=", owner),
    ),
    finish: prepared((p: EndRow & { nothing: Uint8Array }) =>
      db
        .updateTable("calls")
        .set({
          state: p.state,
          ended: 1,
          call: p.call,
          args: sql<Uint8Array>`case when shown is null then args else ${p.nothing} end`,
          result: p.result,
          outcome: p.outcome,
          outcome_pending: p.pending,
          kept_from_ms: p.kept_from_ms,
        })
        .where("id", "=", p.id)
        .where(isIn(p.before))
        .where("owner", "=", owner),
    ),
    acknowledge: prepared((p: AcknowledgedRow) =>
      db
        .updateTable("calls")
        .set({ outcome_pending: 0, outcome: null, outcome_index: p.idx, kept_from_ms: p.now_ms })
        .where("id", "=", p.id),
    ),
  };
}

/** The same for many rows, on PostgreSQL. */
export function manyCallsStatements(db: Database<RegistryTables>, owner: string) {
  const STATE = { id: "text", state: "integer", call: "bytea", before: "integer" } as const;
  const isMine = sql`calls.id = given.id and ((given.before >> calls.state) & 1) = 1 and calls.owner = ${owner}`;
  return {
    insert: forRows<InsertRow, { id: string }>(
      db,
      {
        id: "text",
        device_id: "text",
        tool: "text",
        principal_id: "text",
        state: "integer",
        args: "bytea",
        shown: "bytea",
        call: "bytea",
      },
      (given) => sql`
        insert into calls (id, device_id, tool, principal_id, state, ended, args, shown, call, owner)
        select id, device_id, tool, principal_id, state, 0, args, shown, call, ${owner}::text from ${given} order by ord
        on conflict (id) do nothing returning id`,
    ),
    update: forRows<StateRow, { id: string }>(
      db,
      STATE,
      (given) => sql`
        update calls set state = given.state, call = given.call from ${given} where ${isMine} returning calls.id`,
    ),
    finish: forRows<EndRow, { id: string }>(
      db,
      { ...STATE, result: "bytea", outcome: "bytea", pending: "integer", kept_from_ms: "bigint" },
      (given) => sql`
        update calls set state = given.state, ended = 1, call = given.call,
          args = case when calls.shown is null then calls.args else ''::bytea end,
          result = given.result, outcome = given.outcome, outcome_pending = given.pending,
          kept_from_ms = given.kept_from_ms
        from ${given} where ${isMine} returning calls.id`,
    ),
    acknowledge: forRows<AcknowledgedRow, { id: string }>(
      db,
      { id: "text", idx: "bigint", now_ms: "bigint" },
      (given) => sql`
        update calls set outcome_pending = 0, outcome = null, outcome_index = given.idx, kept_from_ms = given.now_ms
        from ${given} where calls.id = given.id returning calls.id`,
    ),
  };
}
