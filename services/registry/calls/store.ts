import { fromBinary, type JsonObject, toBinary } from "@bufbuild/protobuf";
import type { Envelope } from "../../../gen/ts/reeve/event/v1/envelope_pb.ts";
import { type Call, CallSchema, type CallState } from "../../../gen/ts/reeve/registry/v1/call_pb.ts";
import type { Outbox } from "../../../lib/events/outbox.ts";
import type { Database } from "../../../lib/store/database.ts";
import type { GroupCommit } from "../../../lib/store/group-commit.ts";
import { prepared } from "../../../lib/store/prepared.ts";
import type { RegistryTables } from "../tables.ts";
import { isEnd } from "./state.ts";

/** A call as it is stored, with its canonical arguments. */
export interface StoredCall {
  call: Call;
  args: Uint8Array;
  /** The replica that leads it. */
  owner: string;
  /** Somebody asked for it to be cancelled. */
  cancelWanted: boolean;
}

/** The end of a call that the audit log has not acknowledged yet. */
export interface PendingOutcome {
  callId: string;
  /** The exact bytes of a reeve.audit.v1.Outcome, the same at every try. */
  outcome: Uint8Array;
}

/** Which calls to list, newest first. */
export interface CallFilter {
  state?: CallState;
  deviceId?: string;
  tool?: string;
  principalId?: string;
  /** Only calls stored before this row. */
  before?: number;
  limit: number;
}

/** Where calls are kept. Every promise resolves when the change is on disk. */
export interface CallStore {
  /** Writes a new call down. False where the id is taken: nothing was written. */
  insert(call: Call, args: Uint8Array): Promise<boolean>;
  /** Keeps a call's new state. False where another replica leads the call now, or has ended it. */
  save(call: Call): Promise<boolean>;
  /** Keeps a state that need not be waited for, since a restart can find it out again. */
  saveLazily(call: Call): void;
  /**
   * Keeps a call's end, its outcome for the audit log and its events, in one transaction. False, and nothing is kept,
   * where another replica leads the call now, or has ended it.
   */
  finish(call: Call, outcome: Uint8Array | undefined, events: readonly Envelope[]): Promise<boolean>;
  /** A call by id. */
  get(id: string): Promise<StoredCall | undefined>;
  /** Calls, newest first, each with its row, without arguments and output. */
  list(filter: CallFilter): Promise<{ row: number; call: Call }[]>;
  /** The audit log has the outcome. */
  outcomeRecorded(callId: string, auditIndex: bigint): void;
}

/**
 * Calls in a database.
 *
 * @param owner the replica that leads what is inserted here. Default none.
 */
export function createCallStore(
  db: Database<RegistryTables>,
  writes: GroupCommit<RegistryTables>,
  outbox: Outbox,
  owner = "",
): CallStore {
  const insertCall = prepared(
    (p: {
      id: string;
      device_id: string;
      tool: string;
      principal_id: string;
      state: number;
      args: Uint8Array;
      call: Uint8Array;
    }) =>
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
          call: p.call,
          owner,
        })
        .onConflict((conflict) => conflict.column("id").doNothing()),
  );
  const updateCall = prepared((p: { id: string; state: number; call: Uint8Array }) =>
    db
      .updateTable("calls")
      .set({ state: p.state, call: p.call })
      .where("id", "=", p.id)
      .where("ended", "=", 0)
      .where("owner", "=", owner),
  );
  const finishCall = prepared(
    (p: {
      id: string;
      state: number;
      call: Uint8Array;
      output: string | null;
      outcome: Uint8Array | null;
      pending: number;
    }) =>
      db
        .updateTable("calls")
        .set({
          state: p.state,
          ended: 1,
          call: p.call,
          output: p.output,
          outcome: p.outcome,
          outcome_pending: p.pending,
        })
        .where("id", "=", p.id)
        .where("ended", "=", 0)
        .where("owner", "=", owner),
  );
  const acknowledge = prepared((p: { id: string; index: number }) =>
    db.updateTable("calls").set({ outcome_pending: 0, outcome: null, outcome_index: p.index }).where("id", "=", p.id),
  );
  const byId = prepared((p: { id: string }) =>
    db
      .selectFrom("calls")
      .select(["call", "args", "output", "outcome_index", "owner", "cancel_wanted"])
      .where("id", "=", p.id),
  );

  return {
    insert: async (call, args) => {
      const row = {
        id: call.id,
        device_id: call.deviceId,
        tool: call.tool,
        principal_id: call.principalId,
        state: call.state,
        args,
        call: toBinary(CallSchema, call),
      };
      return (await writes.write((trx) => insertCall.run(trx, row))) === 1;
    },
    save: async (call) => {
      const row = { id: call.id, state: call.state, call: toBinary(CallSchema, call) };
      return (await writes.write((trx) => updateCall.run(trx, row))) === 1;
    },
    saveLazily: (call) => {
      writes.writeLazily(async (trx) => {
        // Taken when it is written, not when it was asked for: a call that has ended meanwhile needs no write.
        if (isEnd(call.state)) return;
        await updateCall.run(trx, { id: call.id, state: call.state, call: toBinary(CallSchema, call) });
      });
    },
    finish: async ({ output, ...call }, outcome, events) => {
      const row = {
        id: call.id,
        state: call.state,
        call: toBinary(CallSchema, call),
        output: output === undefined ? null : JSON.stringify(output),
        outcome: outcome ?? null,
        pending: outcome === undefined ? 0 : 1,
      };
      return writes.write(async (trx) => {
        if ((await finishCall.run(trx, row)) === 0) return false;
        if (events.length > 0) await outbox.enqueue(trx, events);
        return true;
      });
    },
    get: async (id) => {
      const row = await byId.first(db, { id });
      if (row === undefined) return undefined;
      const call = withIndex(fromBinary(CallSchema, row.call), row.outcome_index);
      if (row.output !== null) call.output = JSON.parse(row.output) as JsonObject;
      return { call, args: row.args, owner: row.owner, cancelWanted: row.cancel_wanted === 1 };
    },
    list: async (filter) => {
      let query = db.selectFrom("calls").select(["row", "call", "outcome_index"]).orderBy("row", "desc");
      if (filter.state !== undefined) query = query.where("state", "=", filter.state);
      if (filter.deviceId !== undefined) query = query.where("device_id", "=", filter.deviceId);
      if (filter.tool !== undefined) query = query.where("tool", "=", filter.tool);
      if (filter.principalId !== undefined) query = query.where("principal_id", "=", filter.principalId);
      if (filter.before !== undefined) query = query.where("row", "<", filter.before);
      const rows = await query.limit(filter.limit).execute();
      return rows.map(({ row, call, outcome_index }) => ({
        row,
        call: withIndex(fromBinary(CallSchema, call), outcome_index),
      }));
    },
    outcomeRecorded: (callId, auditIndex) => {
      writes.writeLazily(async (trx) => {
        await acknowledge.run(trx, { id: callId, index: Number(auditIndex) });
      });
    },
  };
}

function withIndex(call: Call, index: number | null): Call {
  if (index !== null) call.outcomeAuditIndex = BigInt(index);
  return call;
}
