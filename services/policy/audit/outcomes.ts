import { create, toBinary } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { AuditRecordSchema, type CallOutcome, CallOutcomeSchema } from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import { CallState, CallStateSchema } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { missingField } from "../../../lib/fault/invalid-input.ts";
import { sha256Hex } from "../../../lib/sign/canonical.ts";
import { prepared, type QueryRunner } from "../../../lib/store/prepared.ts";
import type { RecordedWrites } from "../storage/recorded-writes.ts";
import type { PolicyDatabase, PolicyTables } from "../storage/tables.ts";
import type { AuditLog } from "./log.ts";
import { deviceToolResource, fanOutToolResource } from "./records.ts";

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

/** The name of an end, such as "SUCCEEDED", in rows and errors. */
export function endState(state: CallState): string {
  return CallStateSchema.value[state]?.localName ?? String(state);
}

/** The fault CALL_ENDED: nothing follows a call's end. */
export function callEnded({ call_id, state }: Pick<OutcomeRow, "call_id" | "state">): Error {
  return fault(ErrorReason.CALL_ENDED, { call_id, state }, { message: `the call has ended already: ${state}` });
}

/** Writes down how calls ended. */
export interface OutcomeRecorder {
  /**
   * Appends the record of a call's end and returns its index. The same outcome again returns the same index. Throws
   * CALL_ENDED for another outcome of a call that has one, and INVALID_INPUT where the call or its state is not named.
   */
  record(outcome: CallOutcome, actor: string): Promise<number>;
}

export interface OutcomeOptions {
  writes: RecordedWrites;
  store: OutcomeStore;
  log: AuditLog;
  /** Ends what still waits for the call, in the same transaction. The result is called after the commit. */
  onEnded: (trx: QueryRunner, outcome: CallOutcome) => Promise<() => void>;
  now: () => number;
}

/** Records outcomes in the log and, by call id, in the table outcomes. */
export function createOutcomeRecorder({ writes, store, log, onEnded, now }: OutcomeOptions): OutcomeRecorder {
  return {
    async record(outcome, actor) {
      if (outcome.callId === "") throw missingField("callId");
      if (outcome.state === CallState.UNSPECIFIED) throw missingField("state");
      const digest = sha256Hex(toBinary(CallOutcomeSchema, outcome));
      const { idx, notify } = await writes.write(async (trx) => {
        const known = await store.find(trx, outcome.callId);
        if (known) return { idx: indexOfSame(known, digest), notify: undefined };
        const idx = await log.append(trx, outcomeRecord(outcome, actor, now()), "elsewhere");
        await store.insert(trx, { call_id: outcome.callId, digest, state: endState(outcome.state), idx });
        return { idx, notify: await onEnded(trx, outcome) };
      });
      notify?.();
      return idx;
    },
  };
}

function outcomeRecord(outcome: CallOutcome, actor: string, nowMs: number) {
  const { callId, deviceId, tool } = outcome;
  return create(AuditRecordSchema, {
    version: 1,
    time: timestampFromMs(nowMs),
    actor,
    callId,
    resource: deviceId === "" ? fanOutToolResource(callId, tool) : deviceToolResource(deviceId, tool),
    event: { case: "outcome", value: outcome },
  });
}

function indexOfSame(known: OutcomeRow, digest: string): number {
  if (known.digest === digest) return known.idx;
  throw callEnded(known);
}
