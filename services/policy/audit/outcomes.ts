import { create, toBinary } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type AuditRecord,
  AuditRecordSchema,
  type CallOutcome,
  CallOutcomeSchema,
} from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import { CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { missingField } from "../../../lib/fault/invalid-input.ts";
import { sha256Hex } from "../../../lib/sign/canonical.ts";
import type { QueryRunner } from "../../../lib/store/prepared.ts";
import type { RowKind } from "../../../lib/store/rows.ts";
import type { RecordedWrites } from "../storage/recorded-writes.ts";
import type { PolicyTables } from "../storage/tables.ts";
import type { AuditLog } from "./log.ts";
import { endState, type OutcomeRow, type OutcomeStore } from "./outcome-store.ts";
import { deviceToolResource, fanOutToolResource } from "./records.ts";

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
export function createOutcomeRecorder(options: OutcomeOptions): OutcomeRecorder {
  const { writes, now } = options;
  const rows = outcomeRows(options);
  return {
    async record(outcome, actor) {
      if (outcome.callId === "") throw missingField("callId");
      if (outcome.state === CallState.UNSPECIFIED) throw missingField("state");
      const encoded = toBinary(CallOutcomeSchema, outcome);
      const digest = sha256Hex(encoded);
      const record = outcomeRecord(outcome, actor, now());
      const { known, notify } = await writes.writeRow(rows, { outcome, record, digest, bytes: encoded.length });
      notify();
      return indexOfSame(known, digest);
    },
  };
}

interface EndedRow {
  outcome: CallOutcome;
  record: AuditRecord;
  digest: string;
  /** The outcome's size. */
  bytes: number;
}

/** What is known about a call's end once it was written: what it was before, or this. */
interface KnownEnd {
  known: OutcomeRow;
  /** Called after the commit. */
  notify: () => void;
}

function outcomeRows({ store, log, onEnded }: OutcomeOptions): RowKind<PolicyTables, EndedRow, KnownEnd> {
  const rowAt = ({ outcome, digest }: EndedRow, idx: number): OutcomeRow => ({
    call_id: outcome.callId,
    digest,
    state: endState(outcome.state),
    idx,
  });
  const knownBefore = (known: OutcomeRow): KnownEnd => ({ known, notify: () => {} });
  return {
    key: ({ outcome }) => outcome.callId,
    bytes: ({ bytes }) => bytes,
    async one(trx, ended) {
      const before = await store.find(trx, ended.outcome.callId);
      if (before) return knownBefore(before);
      const known = rowAt(ended, await log.append(trx, ended.record, "elsewhere"));
      await store.insert(trx, known);
      return { known, notify: await onEnded(trx, ended.outcome) };
    },
    async many(trx, rows) {
      const stored = await store.findAll(
        trx,
        rows.map(({ outcome }) => outcome.callId),
      );
      const ends = new Map(stored.map((row) => [row.call_id, knownBefore(row)]));
      const fresh = rows.filter(({ outcome }) => !ends.has(outcome.callId));
      if (fresh.length > 0) {
        const indexes = await log.appendAll(
          trx,
          fresh.map(({ record }) => ({ record, listed: "elsewhere" })),
        );
        const written = fresh.map((ended, at) => rowAt(ended, indexes[at] ?? Number.NaN));
        await store.insertAll(trx, written);
        for (const [at, { outcome }] of fresh.entries()) {
          const known = written[at];
          if (known) ends.set(outcome.callId, { known, notify: await onEnded(trx, outcome) });
        }
      }
      return rows.flatMap(({ outcome }) => ends.get(outcome.callId) ?? []);
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
