import { fromBinary } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { CallOutcomeSchema } from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import { CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { SandboxLevel } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import { testCall } from "../../../testkit/test-call.ts";
import type { CallEnd } from "./end.ts";
import { createFinisher } from "./finish.ts";
import { createLiveCall } from "./live-call.ts";
import type { CallStore } from "./store.ts";

const ENDED: CallEnd = {
  state: CallState.SUCCEEDED,
  output: { text: "done" },
  outputDigest: "a".repeat(64),
  outputBytes: 15,
  error: undefined,
  message: "",
  receipt: undefined,
  grantId: "",
  sandbox: SandboxLevel.NONE,
};

/** Ends a call as a restarted registry knows it, and returns what goes into the audit log. */
async function outcomeOf(grantId: string, end: CallEnd) {
  const written: Uint8Array[] = [];
  const finish: CallStore["finish"] = async (_, outcome) => {
    if (outcome !== undefined) written.push(outcome);
    return true;
  };
  const finisher = createFinisher({
    store: { finish } as CallStore,
    now: () => 1_800_000_000_000,
    lockOf: async () => undefined,
    hasSubscribers: () => false,
    onFinished: () => undefined,
    endElsewhere: () => Promise.reject(new Error("no other replica owns it")),
  });
  const call = testCall({ id: "call-1", tool: "exec", grantId, state: CallState.RECEIVED });
  await finisher.finish(createLiveCall(call, new Uint8Array(), undefined), end);
  return written.map((bytes) => fromBinary(CallOutcomeSchema, bytes));
}

test("records the grant that the device used where a crash took the registry's own note of it", async () => {
  expect(await outcomeOf("", { ...ENDED, grantId: "used" })).toMatchObject([
    { grantId: "used", state: CallState.SUCCEEDED },
  ]);
});

test("records the grant that was given where the device used none", async () => {
  const lost = { ...ENDED, state: CallState.UNKNOWN, output: undefined };
  expect(await outcomeOf("given", lost)).toMatchObject([{ grantId: "given", state: CallState.UNKNOWN }]);
});

test("leaves denials to policy, which wrote them down when it decided", async () => {
  expect(await outcomeOf("", { ...ENDED, state: CallState.DENIED, output: undefined })).toEqual([]);
});

test("reports the end that another replica found where that one owns the call by now", async () => {
  const finished: string[] = [];
  const finisher = createFinisher({
    store: { finish: async () => false } as unknown as CallStore,
    now: () => 1_800_000_000_000,
    lockOf: async () => undefined,
    hasSubscribers: () => false,
    onFinished: ({ id }) => void finished.push(id),
    endElsewhere: async ({ call }) => testCall({ id: call.id, state: CallState.CANCELED }),
  });
  const live = createLiveCall(testCall({ id: "c", state: CallState.DISPATCHED }), new Uint8Array(), undefined);
  const seen: (CallState | undefined)[] = [];
  live.watch(({ event }) => void (event.case === "call" && seen.push(event.value.status?.state)));
  await finisher.finish(live, ENDED);
  expect(await live.ended).toMatchObject({ status: { state: CallState.CANCELED } });
  expect(live.call.status.output).toBeUndefined();
  expect(seen).toEqual([CallState.CANCELED]);
  // No second outcome, and no second event.
  expect(finished).toEqual([]);
});
