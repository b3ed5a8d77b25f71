import { create, toBinary } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { AuditRecordSchema, type CallOutcome, CallOutcomeSchema } from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { sha256Hex } from "../../../lib/sign/canonical.ts";
import type { QueryRunner } from "../../../lib/store/prepared.ts";
import type { RecordedWrites } from "../recorded-writes.ts";
import type { AuditLog } from "./log.ts";
import { callEnded, type OutcomeRow, type OutcomeStore } from "./outcome-store.ts";
import { deviceToolResource } from "./resources.ts";

/** Writes down how calls ended. */
export interface OutcomeRecorder {
  /**
   * Appends the record of a call's end and returns its index. The same outcome again returns the same index. Throws
   * CALL_ENDED for another outcome of a call that has one, and INVALID_INPUT where the call or its state is not named.
   */
  record(outcome: CallOutcome, actor: string): Promise<number>;
}

/** What a recorder needs. */
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
      if (outcome.callId === "") throw missing("callId");
      if (outcome.state === "") throw missing("state");
      const digest = sha256Hex(toBinary(CallOutcomeSchema, outcome));
      const { idx, tell } = await writes.write(async (trx) => {
        const known = await store.find(trx, outcome.callId);
        if (known) return { idx: indexOfSame(known, digest), tell: undefined };
        const idx = await log.append(trx, outcomeRecord(outcome, actor, now()), "elsewhere");
        await store.insert(trx, { call_id: outcome.callId, digest, state: outcome.state, idx });
        return { idx, tell: await onEnded(trx, outcome) };
      });
      tell?.();
      return idx;
    },
  };
}

function outcomeRecord(outcome: CallOutcome, actor: string, nowMs: number) {
  return create(AuditRecordSchema, {
    version: 1,
    time: timestampFromMs(nowMs),
    actor,
    callId: outcome.callId,
    resource: deviceToolResource(outcome.deviceId, outcome.tool),
    event: { case: "outcome", value: outcome },
  });
}

function indexOfSame(known: OutcomeRow, digest: string): number {
  if (known.digest === digest) return known.idx;
  throw callEnded(known);
}

function missing(field: string): Error {
  return fault(ErrorReason.INVALID_INPUT, { field, rule: "required" }, { message: `${field} is required` });
}
