import { create, fromBinary } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { AuditRecordSchema, type CallOutcome, CallOutcomeSchema } from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import { CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { DecisionSchema } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { reasonOf } from "../../../lib/fault/fault.ts";
import { createGroupCommit, type GroupCommit } from "../../../lib/store/group-commit.ts";
import { STORE_KINDS, useStore } from "../../../lib/store/testdata/stores.ts";
import { type AuditLog, createAuditLog, type Listed } from "../audit/log.ts";
import { createOutcomeStore } from "../audit/outcome-store.ts";
import { createOutcomeRecorder, type OutcomeRecorder } from "../audit/outcomes.ts";
import { RollBack } from "../storage/recorded-writes.ts";
import { type PolicyDatabase, type PolicyTables, policyMigrations } from "../storage/tables.ts";
import { type DecidedRow, type DecisionRows, decisionRows } from "./decision-rows.ts";
import { createDecisionStore } from "./decision-store.ts";

const record = (callId: string, actor = callId) => create(AuditRecordSchema, { version: 1, callId, actor });

function decided(callId: string, delivery = 0): DecidedRow {
  const listed: Listed = delivery === 0 ? "elsewhere" : "here";
  const key = delivery === 0 ? callId : `${callId}#${delivery}`;
  const outcome = { kind: "denial", reason: ErrorReason.POLICY_DENIED, message: "no" } as const;
  return {
    callId,
    key,
    digest: "d",
    record: record(callId, key),
    listed,
    head: { ruleIds: [], policyVersion: "1" },
    outcome,
  };
}

const ended = (callId: string, state: CallState = CallState.SUCCEEDED): CallOutcome =>
  create(CallOutcomeSchema, { callId, state, grantId: "g" });

describe.each(STORE_KINDS)("decisions and ends of one batch on %s", (kind) => {
  const place = useStore(kind);
  let db: PolicyDatabase;
  let log: AuditLog;
  let rows: DecisionRows;
  let writes: GroupCommit<PolicyTables>;
  let outcomes: OutcomeRecorder;
  beforeEach(async () => {
    db = await place.open<PolicyTables>(policyMigrations);
    writes = createGroupCommit(db, { lock: "log" });
    log = createAuditLog(db, () => {});
    rows = decisionRows(log, createDecisionStore(db));
    outcomes = createOutcomeRecorder({
      writes,
      store: createOutcomeStore(db),
      log,
      onEnded: async (_, { callId }) => {
        if (callId === "failing") throw new Error("it cannot be ended");
        return () => {};
      },
      now: () => 0,
    });
  });
  afterEach(() => writes.close());

  /** The index of the decision's record; undefined where there is one already, or the call has ended. */
  const decide = async (row: DecidedRow, on = writes, as = rows) => {
    const decision = await on.writeRow(as, row).catch((e: unknown) => {
      if (e instanceof RollBack) return undefined;
      throw e;
    });
    return decision && Number(decision.auditIndex);
  };
  /** Of each record in the log its actor: the decision's key. Throws where an index is missing. */
  const actors = async () => {
    const records = await db.selectFrom("records").selectAll().orderBy("idx").execute();
    expect(records.map(({ idx }) => idx)).toEqual(records.map((_, at) => at));
    return records.map(({ leaf }) => fromBinary(AuditRecordSchema, leaf).actor);
  };

  test("each decision is stored once, with the index of its own record, and leaves no gap", async () => {
    const asked = ["a", "b", "a", "c", "b", "d"];
    const indexes = await Promise.all(asked.map((callId) => decide(decided(callId))));
    expect(indexes.map((index) => index !== undefined)).toEqual([true, true, false, true, false, true]);
    const log = await actors();
    expect(log).toHaveLength(4);
    for (const [at, index] of indexes.entries()) if (index !== undefined) expect(log[index]).toBe(asked[at]);
    const stored = await db.selectFrom("decisions").selectAll().execute();
    const places = stored.map(({ call_id, idx }) => ({ idx, key: call_id })).sort((a, b) => a.idx - b.idx);
    expect(places).toEqual(log.map((key, idx) => ({ idx, key })));
    for (const { decision, idx } of stored) expect(fromBinary(DecisionSchema, decision).auditIndex).toBe(BigInt(idx));
  });

  test("nothing is decided about a call whose end came before, and an end may follow its decision", async () => {
    const results = await Promise.all([
      outcomes.record(ended("a"), "registry"),
      decide(decided("a")),
      decide(decided("b")),
      outcomes.record(ended("b"), "registry"),
      decide(decided("c")),
      decide(decided("b", 1)),
    ]);
    expect(results.map((index) => index !== undefined)).toEqual([true, false, true, true, true, false]);
    expect((await actors()).sort()).toEqual(["b", "c", "registry", "registry"]);
  });

  test("the log lists decisions that were asked for again under their call", async () => {
    const [, second, third] = await Promise.all([0, 1, 2].map((delivery) => decide(decided("a", delivery))));
    const [other] = await Promise.all([decide(decided("b", 1)), decide(decided("c"))]);
    const listed = await db.selectFrom("call_records").selectAll().orderBy("idx").execute();
    expect(listed).toEqual([
      { call_id: "a", idx: second },
      { call_id: "a", idx: third },
      { call_id: "b", idx: other },
    ]);
  });

  test("the same end again has the same index, another one is refused, and neither harms its neighbors", async () => {
    const results = await Promise.allSettled([
      outcomes.record(ended("a"), "registry"),
      outcomes.record(ended("b"), "registry"),
      outcomes.record(ended("a"), "registry"),
      outcomes.record(ended("b", CallState.FAILED), "registry"),
      outcomes.record(ended("c"), "registry"),
    ]);
    const [a, , again, other] = results;
    expect(results.map(({ status }) => status)).toEqual([
      "fulfilled",
      "fulfilled",
      "fulfilled",
      "rejected",
      "fulfilled",
    ]);
    expect(again).toEqual(a);
    expect(other?.status === "rejected" && reasonOf(other.reason)).toBe(ErrorReason.CALL_ENDED);
    expect(await actors()).toHaveLength(3);
  });

  test("a failing end is rejected alone, without a gap in the log", async () => {
    const results = await Promise.allSettled([
      outcomes.record(ended("a"), "registry"),
      decide(decided("b")),
      outcomes.record(ended("failing"), "registry"),
      decide(decided("c")),
      outcomes.record(ended("d"), "registry"),
    ]);
    const statuses = ["fulfilled", "fulfilled", "rejected", "fulfilled", "fulfilled"];
    expect(results.map(({ status }) => status)).toEqual(statuses);
    expect(await actors()).toHaveLength(4);
    expect(await db.selectFrom("outcomes").select("call_id").orderBy("call_id").execute()).toEqual([
      { call_id: "a" },
      { call_id: "d" },
    ]);
  });

  test("records of other jobs lie between those that came before and after", async () => {
    const append = (actor: string) => writes.write((trx) => log.append(trx, record("", actor), "here"));
    await Promise.all([
      decide(decided("a")),
      decide(decided("b")),
      append("between"),
      decide(decided("c")),
      decide(decided("d")),
    ]);
    expect(await actors()).toEqual(["a", "b", "between", "c", "d"]);
  });

  test("batches of two writers leave no gap, and decide each call once", async () => {
    const other = createGroupCommit(db, { lock: "log" });
    const calls = Array.from({ length: 100 }, (_, i) => `call-${i}`);
    const both = calls.map(async (callId) => {
      const indexes = await Promise.all([decide(decided(callId)), decide(decided(callId), other)]);
      return indexes.filter((index) => index !== undefined);
    });
    const indexes = await Promise.all(both);
    expect(indexes.every(({ length }) => length === 1)).toBe(true);
    const written = await actors();
    expect(indexes.flat().map((index) => written[index])).toEqual(calls);
    expect(written).toHaveLength(100);
    await other.close();
  });
});
