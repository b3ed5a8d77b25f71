import { once } from "node:events";
import { create } from "@bufbuild/protobuf";
import { afterEach, expect, test, vi } from "vitest";
import { DecisionRequestSchema } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { createPolicyLink, type PolicyOpener } from "./policy-link.ts";

afterEach(() => void vi.useRealTimers());

/** A policy that never answers. */
const silent: PolicyOpener = (_, signal) => {
  const next = () => once(signal, "abort").then(() => ({ done: true as const, value: undefined }));
  return { [Symbol.asyncIterator]: () => ({ next }) };
};

test("closing leaves no clock running for questions that got no answer", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const link = createPolicyLink(silent);
  void link.authorize(create(DecisionRequestSchema, { callId: "c" }));
  expect(vi.getTimerCount()).toBe(1);
  await link.close();
  expect(vi.getTimerCount()).toBe(0);
});
