import { once } from "node:events";
import { create } from "@bufbuild/protobuf";
import { afterEach, expect, test, vi } from "vitest";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { DecisionRequestSchema } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import {
  ExchangeResponseSchema,
  type PolicyRequestFrame,
  type PolicyResponseFrame,
  PolicyResponseFrameSchema,
} from "../../../gen/ts/reeve/policy/v1/policy_service_pb.ts";
import { createPolicyLink, type PolicyDialer } from "./policy-link.ts";

afterEach(() => void vi.useRealTimers());

/** A policy that never answers. */
const silent: PolicyDialer = (_, signal) => {
  const next = () => once(signal, "abort").then(() => ({ done: true as const, value: undefined }));
  return { [Symbol.asyncIterator]: () => ({ next }) };
};

test("closing leaves no clock running for questions that got no answer", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const link = createPolicyLink(silent);
  void link.authorize(create(DecisionRequestSchema, { callId: "c" }));
  expect(vi.getTimerCount()).toBeGreaterThan(0);
  await link.close();
  expect(vi.getTimerCount()).toBe(0);
});

/** The answer to what is asked first on each stream. */
const hello = create(PolicyResponseFrameSchema, { response: { case: "keyrings", value: {} } });

/** A policy that answers one question after another. */
function answering(
  answer: (request: PolicyRequestFrame, turn: number) => PolicyResponseFrame["response"],
): PolicyDialer {
  let turn = 0;
  return async function* (requests) {
    for await (const { frames: asked } of requests) {
      const frames = asked.map((one) =>
        one.id === 0n ? hello : create(PolicyResponseFrameSchema, { id: one.id, response: answer(one, turn++) }),
      );
      yield create(ExchangeResponseSchema, { frames });
    }
  };
}

test("a wait for a person goes on when policy's database was unavailable for a moment", async () => {
  const failure = (reason: ErrorReason) =>
    create(PolicyResponseFrameSchema, {
      response: { case: "error", value: { error: { reason }, message: "unavailable" } },
    }).response;
  const link = createPolicyLink(
    answering((_, turn) => {
      if (turn === 0) return failure(ErrorReason.NOT_READY);
      return create(PolicyResponseFrameSchema, { response: { case: "decision", value: { auditIndex: 7n } } }).response;
    }),
  );
  const { auditIndex } = await link.awaitApproval("apr-1", new AbortController().signal);
  expect(auditIndex).toBe(7n);
  await link.close();
});

test("a wait for an approval that does not exist is rejected", async () => {
  const error = { reason: ErrorReason.NOT_FOUND };
  const link = createPolicyLink(
    answering(
      () =>
        create(PolicyResponseFrameSchema, { response: { case: "error", value: { error, message: "none" } } }).response,
    ),
  );
  await expect(link.awaitApproval("apr-1", new AbortController().signal)).rejects.toThrow("none");
  await link.close();
});

const request = create(DecisionRequestSchema, { callId: "c" });
const LONG_MS = 3_600_000;

test.each([
  ["cannot be reached", () => Promise.reject(new Error("refused"))],
  ["takes the stream and never answers", () => new Promise<never>(() => undefined)],
])("a policy that %s is unavailable soon, and is not waited for", async (_, next) => {
  const dialer: PolicyDialer = (_requests, signal) => ({
    [Symbol.asyncIterator]: () => ({
      next: () => Promise.race([next(), once(signal, "abort").then(() => ({ done: true as const, value: undefined }))]),
    }),
  });
  const link = createPolicyLink(dialer, { timeoutMs: LONG_MS });
  expect(link.unavailable).toBe(false);
  await expect(link.authorize(request)).rejects.toMatchObject({ rawMessage: expect.stringContaining("policy") });
  await vi.waitUntil(() => link.unavailable);
  expect(link.up).toBe(false);
  await expect(link.authorize(request)).rejects.toThrow("policy");
  await link.close();
});

test("a question that was in flight when the link broke is asked again, and one in between is too", async () => {
  let streams = 0;
  const askedBetween = Promise.withResolvers<void>();
  const decide = answering(
    () => create(PolicyResponseFrameSchema, { response: { case: "decision", value: {} } }).response,
  );
  const dialer: PolicyDialer = async function* (requests, signal) {
    if (++streams > 1) {
      await askedBetween.promise;
      return yield* decide(requests, signal);
    }
    for await (const { frames } of requests) {
      if (frames.some(({ id }) => id === 0n)) yield create(ExchangeResponseSchema, { frames: [hello] });
      if (frames.some(({ id }) => id !== 0n)) throw new Error("policy was killed");
    }
  };
  const link = createPolicyLink(dialer, { timeoutMs: LONG_MS });
  await vi.waitUntil(() => link.up);
  const asked = link.authorize(request);
  await vi.waitUntil(() => !link.up);
  const between = link.authorize(request);
  askedBetween.resolve();
  expect(await Promise.all([asked, between])).toHaveLength(2);
  expect(link.unavailable).toBe(false);
  await link.close();
});
