import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import type { CompleteCall } from "../../client/complete-call.ts";
import { AuditRecordSchema } from "../../gen/ts/reeve/audit/v1/record_pb.ts";
import { CallState, DecisionKind } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { ExecutionFinishedSchema } from "../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { ExecutionOutcome } from "../../gen/ts/reeve/device/v1/receipt_pb.ts";
import { testCall } from "../../testkit/test-call.ts";
import { planFaults } from "./faults.ts";
import { type PlannedCall, planCalls } from "./planned-calls.ts";
import { type Evidence, lies } from "./truth.ts";

const statement = new Uint8Array([1, 2, 3]);
const receipt = { statement };
const planned: PlannedCall = {
  id: "c",
  kind: "quick",
  atMs: 0,
  device: "this",
  as: "operator",
  way: "unary",
  argv: ["true"],
};
const succeeded = testCall({ id: "c", state: CallState.SUCCEEDED, grantId: "g", receipt });
const decided = (decision: DecisionKind, grantId = "") =>
  create(AuditRecordSchema, { callId: "c", event: { case: "decided", value: { decision, grantId } } });
const outcome = (state: CallState, grantId = "") =>
  create(AuditRecordSchema, { callId: "c", event: { case: "outcome", value: { callId: "c", state, grantId } } });

/** A call that ran once and succeeded, as everybody says, but for what is given. */
function evidenceOf(changed: Partial<Evidence> = {}): Evidence {
  return {
    planned,
    reported: succeeded,
    shown: [succeeded, succeeded],
    marks: 1,
    ledger: {
      state: "finished",
      finished: create(ExecutionFinishedSchema, { outcome: ExecutionOutcome.SUCCEEDED, receipt }),
    },
    records: [decided(DecisionKind.PERMIT, "g"), outcome(CallState.SUCCEEDED, "g")],
    ...changed,
  };
}

const failed = (reason: ErrorReason): CompleteCall => testCall({ id: "c", state: CallState.FAILED, error: { reason } });

test("a call that everybody says the same of is true", () => {
  expect(lies(evidenceOf())).toEqual([]);
});

test("a call that never ran and says so is true", () => {
  const call = failed(ErrorReason.DEVICE_OFFLINE);
  const records = [decided(DecisionKind.PERMIT, "g"), outcome(CallState.FAILED)];
  expect(lies(evidenceOf({ reported: call, shown: [call, call], marks: 0, ledger: undefined, records }))).toEqual([]);
});

const running = testCall({ id: "c", state: CallState.DISPATCHED });
const offline = failed(ErrorReason.DEVICE_OFFLINE);

test.each<[string, Partial<Evidence>]>([
  ["is lost", { shown: [undefined, undefined] }],
  ["executed twice", { marks: 2 }],
  ["no end", { shown: [running, running] }],
  ["given no end", { reported: undefined }],
  ["another caller was given FAILED/device_offline", { reported: offline }],
  ["another caller was given FAILED/device_offline", { shown: [succeeded, offline] }],
  ["left no mark", { marks: 0 }],
  ["says that nothing ran", { reported: offline, shown: [offline] }],
  ["a human said no", { planned: { ...planned, answer: "no" } }],
  ["not in the device's ledger", { ledger: undefined }],
  ["no end of it", { ledger: { state: "started", finished: undefined } }],
  [
    "ledger says finished",
    {
      ledger: {
        state: "finished",
        finished: create(ExecutionFinishedSchema, { outcome: ExecutionOutcome.FAILED, receipt }),
      },
    },
  ],
  ["0 outcomes", { records: [decided(DecisionKind.PERMIT, "g")] }],
  [
    "2 outcomes",
    {
      records: [
        decided(DecisionKind.PERMIT, "g"),
        outcome(CallState.SUCCEEDED, "g"),
        outcome(CallState.SUCCEEDED, "g"),
      ],
    },
  ],
  ["the log says FAILED", { records: [decided(DecisionKind.PERMIT, "g"), outcome(CallState.FAILED, "g")] }],
  [
    "2 decisions",
    {
      records: [
        decided(DecisionKind.PERMIT, "g"),
        decided(DecisionKind.PERMIT, "h"),
        outcome(CallState.SUCCEEDED, "g"),
      ],
    },
  ],
  ["no permit for its grant", { records: [decided(DecisionKind.DENIAL), outcome(CallState.SUCCEEDED, "g")] }],
])("a lie is found: %s", (words, changed) => {
  expect(lies(evidenceOf(changed)).join("\n")).toContain(words);
});

test("the same seed gives the same calls and the same faults, another one others", () => {
  const plannedCalls = (seed: number) => planCalls({ calls: 50, ms: 1000, seed, marks: new Map([["this", "/marks"]]) });
  const faults = (seed: number) => {
    const plan = planFaults(seed);
    return Array.from({ length: 50 }, () => plan.next().value);
  };
  expect(plannedCalls(1)).toEqual(plannedCalls(1));
  expect(faults(1)).toEqual(faults(1));
  expect(faults(1)).not.toEqual(faults(2));
});
