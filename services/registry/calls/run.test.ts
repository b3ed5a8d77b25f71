import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { DecisionSchema } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { testCall } from "../../../testkit/test-call.ts";
import type { CallEnd } from "./end.ts";
import { createLiveCall } from "./live-call.ts";
import { type RunPorts, resumeCall } from "./run.ts";
import { stateName } from "./state.ts";

function portsThat(options: { decide: () => Promise<unknown>; finish: (end: CallEnd) => Promise<void> }): RunPorts {
  return {
    store: { save: async () => true },
    policy: { awaitApproval: options.decide },
    finisher: { finish: (_: unknown, end: CallEnd) => options.finish(end) },
    device: () => undefined,
    lockOf: async () => undefined,
    link: () => undefined,
    isMine: async () => true,
    queue: { mustQueue: () => false },
  } as unknown as RunPorts;
}

const heldCall = () => createLiveCall(testCall({ id: "call-1", state: CallState.HELD }), new Uint8Array(), undefined);

test("an end that could not be written is not written as another one", async () => {
  const ends: CallState[] = [];
  const permit = create(DecisionSchema, { outcome: { case: "permit", value: { grantId: "g" } } });
  const ports = portsThat({
    decide: async () => permit,
    finish: async (end) => {
      ends.push(end.state);
      throw new Error("the disk is full");
    },
  });
  await expect(resumeCall(heldCall(), ports)).rejects.toThrow("the disk is full");
  expect(ends).toHaveLength(1);
});

test("a held call whose wait is canceled ends as canceled", async () => {
  const ends: CallState[] = [];
  const held = heldCall();
  const ports = portsThat({
    decide: async () => {
      held.canceled.abort();
      throw new Error("gone");
    },
    finish: async (end) => void ends.push(end.state),
  });
  await resumeCall(held, ports);
  expect(ends).toEqual([CallState.CANCELED]);
});

test("a held call that was allowed is on disk as permitted before it is sent", async () => {
  const steps: string[] = [];
  const permit = create(DecisionSchema, { outcome: { case: "permit", value: { grantId: "g" } } });
  const ports = portsThat({ decide: async () => permit, finish: async () => void steps.push("finished") });
  await resumeCall(heldCall(), {
    ...ports,
    store: {
      ...ports.store,
      async save({ status: { state, grantId } }) {
        steps.push(`saved ${stateName(state)} with ${grantId}`);
        return true;
      },
    },
    link() {
      steps.push("sent");
      return undefined;
    },
  });
  expect(steps.slice(0, 2)).toEqual(["saved PERMITTED with g", "sent"]);
});
