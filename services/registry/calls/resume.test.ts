import { create, toBinary } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import {
  type ExecutionFinished,
  ExecutionFinishedSchema,
} from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { ExecutionOutcome, ReceiptSchema } from "../../../gen/ts/reeve/device/v1/receipt_pb.ts";
import { type Decision, DecisionSchema } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { sha256Hex } from "../../../lib/sign/canonical.ts";
import { testCall } from "../../../testkit/test-call.ts";
import type { DeviceEnd } from "../devices/device-link.ts";
import type { QueueTurn } from "./call-queue.ts";
import { type CallEnd, failedEnd } from "./end.ts";
import { createLiveCall } from "./live-call.ts";
import { type RunPorts, resumeCall } from "./run.ts";

/** A device with a ledger as real ones have it: a call runs once, and one that was settled never does. */
function ledgerDevice(known: ExecutionOutcome[] = []) {
  let ran = 0;
  const ledger = known.map((outcome) => endWith(outcome));
  const once = (next: () => ExecutionOutcome): DeviceEnd => {
    if (ledger.length === 0) ledger.push(endWith(next()));
    return { kind: "finished", finished: ledger[0] as ExecutionFinished };
  };
  const run = () => {
    ran++;
    return ExecutionOutcome.SUCCEEDED;
  };
  return {
    link: {
      start: async () => once(run),
      reconcile: async () => once(() => ExecutionOutcome.NOT_STARTED),
      cancel: () => undefined,
    },
    ran: () => ran,
  };
}

function endWith(outcome: ExecutionOutcome): ExecutionFinished {
  const output = outcome === ExecutionOutcome.SUCCEEDED ? Buffer.from("{}") : Buffer.alloc(0);
  const outputDigest = output.length === 0 ? "" : sha256Hex(output);
  const receipt = create(ReceiptSchema, { callId: "c", deviceId: "dev-1", outcome, outputDigest, grantId: "first" });
  return create(ExecutionFinishedSchema, {
    callId: "c",
    outcome,
    output,
    receipt: { statement: toBinary(ReceiptSchema, receipt) },
  });
}

const permit = create(DecisionSchema, { outcome: { case: "permit", value: { grantId: "second" } } });
const denial = create(DecisionSchema, {
  outcome: { case: "denial", value: { reason: ErrorReason.POLICY_DENIED, userMessage: "not today" } },
});

/** Resumes a call that a process before left in a state, and returns how it ended and the states it went through. */
async function recovered(
  left: { state: CallState; grantId?: string; isKept?: boolean; isCanceled?: boolean },
  facts: { device: ReturnType<typeof ledgerDevice>; decision?: Decision; isOffline?: boolean; turn?: QueueTurn },
) {
  const { isKept = true, isCanceled = false, grantId = "first" } = left;
  const call = testCall({ id: "c", deviceId: "dev-1", state: left.state, grantId });
  if (isKept) call.spec.queueExpireTime = timestampFromMs(1);
  const live = createLiveCall(call, new Uint8Array(), undefined);
  if (isCanceled) live.canceled.abort();
  const states: CallState[] = [];
  live.watch(
    ({ event }) => void (event.case === "call" && states.push(event.value.status?.state ?? CallState.UNSPECIFIED)),
  );
  const ends: CallEnd[] = [];
  let mustQueue = facts.isOffline ?? false;
  await resumeCall(live, {
    store: { save: async () => true, saveLazily: () => undefined },
    policy: { authorize: async () => facts.decision ?? permit },
    finisher: {
      finish: async (_: unknown, end: CallEnd) => void ends.push(end),
      outputCleaner: () => ({ clean: (output: unknown) => output, rest: () => [] }),
    },
    lockOf: async () => undefined,
    device: () => ({
      name: "nas",
      receipts: { verify: (signed: ExecutionFinished["receipt"]) => ({ ok: true, ...signed }) },
    }),
    link: () => facts.device.link,
    isMine: async () => true,
    queue: {
      mustQueue: () => mustQueue,
      next: async () => {
        mustQueue = false;
        return facts.turn ?? (isCanceled ? { kind: "canceled" } : { kind: "ask", question: {} });
      },
    },
  } as unknown as RunPorts);
  expect(ends).toHaveLength(1);
  return { end: ends[0] as CallEnd, states };
}

test.each([CallState.PERMITTED, CallState.DISPATCHED])(
  "a queueable call that was permitted and never reached its device (state %i) waits for it again, and runs",
  async (state) => {
    const device = ledgerDevice();
    const { end, states } = await recovered({ state }, { device, isOffline: true });
    expect(end.state).toBe(CallState.SUCCEEDED);
    expect(states).toEqual([CallState.QUEUED, CallState.PERMITTED, CallState.DISPATCHED]);
    expect(device.ran()).toBe(1);
  },
);

test("a queueable call that ran before the crash is reported with its end, and does not run again", async () => {
  const device = ledgerDevice([ExecutionOutcome.SUCCEEDED]);
  const { end } = await recovered({ state: CallState.DISPATCHED }, { device });
  expect(end).toMatchObject({ state: CallState.SUCCEEDED, grantId: "first" });
  expect(device.ran()).toBe(0);
});

const expired: QueueTurn = { kind: "end", end: failedEnd(new Error("too late")) };

test.each([
  ["is denied by now", { decision: denial }, {}],
  ["is late by now", { turn: expired }, {}],
  ["was canceled", {}, { isCanceled: true }],
])("a queueable call that ran before the crash is reported with its end although it %s", async (_, facts, left) => {
  const device = ledgerDevice([ExecutionOutcome.SUCCEEDED]);
  const { end } = await recovered({ state: CallState.DISPATCHED, ...left }, { device, ...facts });
  expect(end.state).toBe(CallState.SUCCEEDED);
});

test("a queueable call that is denied by now never starts, also where it may have been sent", async () => {
  const device = ledgerDevice();
  const { end } = await recovered({ state: CallState.DISPATCHED }, { device, decision: denial });
  expect(end).toMatchObject({ state: CallState.DENIED, message: "not today" });
  expect(await device.link.start()).toMatchObject({ finished: { outcome: ExecutionOutcome.NOT_STARTED } });
});

test("a queued call that was never sent is denied without asking its device, which is offline", async () => {
  const device = ledgerDevice();
  await recovered({ state: CallState.QUEUED, grantId: "" }, { device, decision: denial });
  expect(await device.link.start()).toMatchObject({ finished: { outcome: ExecutionOutcome.SUCCEEDED } });
});

test("a call that is not to be kept is settled, and never starts after that", async () => {
  const device = ledgerDevice();
  const { end } = await recovered({ state: CallState.DISPATCHED, isKept: false }, { device });
  expect(end).toMatchObject({ state: CallState.FAILED, error: { reason: ErrorReason.NOT_STARTED } });
  expect(device.ran()).toBe(0);
});
