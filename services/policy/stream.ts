import { create } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import type { CallOutcome, DeviceIdentity } from "../../gen/ts/reeve/audit/v1/record_pb.ts";
import { type ErrorDetail, ErrorDetailSchema, ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import type { SignedEnvelope } from "../../gen/ts/reeve/common/v1/signed_pb.ts";
import type { Decision, DecisionRequest } from "../../gen/ts/reeve/policy/v1/decision_pb.ts";
import {
  type Answer,
  AnswerSchema,
  type LinkRequest,
  type LinkResponse,
  LinkResponseSchema,
  type Question,
} from "../../gen/ts/reeve/policy/v1/policy_service_pb.ts";
import { type BatchQueue, createBatchQueue } from "../../lib/async/batch-queue.ts";
import { fault, faultDetail } from "../../lib/fault/fault.ts";
import { outageFault } from "../../lib/store/outage.ts";

/** What questions are answered from. */
export interface Answerers {
  authorize(request: DecisionRequest): Promise<Decision>;
  /** Rejects when the signal says that nobody waits any more. */
  awaitApproval(approvalId: string, signal: AbortSignal): Promise<Decision>;
  /** Resolves with the index of the outcome's record. */
  recordOutcome(outcome: CallOutcome): Promise<number>;
  /** Resolves with the index of the change's record. */
  recordDeviceIdentity(change: DeviceIdentity): Promise<number>;
  /** Resolves when there is a version above the known one. Rejects when the signal says that nobody waits any more. */
  awaitKeyring(knownVersion: bigint, signal: AbortSignal): Promise<readonly SignedEnvelope[]>;
  /** Hears of a failure that is no fault; the asker is told only that something went wrong. */
  onError(error: unknown): void;
}

/**
 * Answers the questions of one stream, each on its own and in any order. A question that fails gets a typed failure and
 * harms no other. When the stream ends, or the signal says so, only its own waiters are dropped: what was decided stays.
 */
export async function* serveLink(
  requests: AsyncIterable<LinkRequest>,
  answerers: Answerers,
  signal: AbortSignal,
): AsyncGenerator<LinkResponse> {
  const answers = createBatchQueue<Answer>();
  const ended = new AbortController();
  const end = (): void => {
    ended.abort(fault(ErrorReason.NOT_READY, {}, { message: "the link has ended" }));
    answers.end();
  };
  signal.addEventListener("abort", end, { once: true });
  void readQuestions(requests, answerers, answers, ended.signal).then(end, (e: unknown) => {
    answers.end(ConnectError.from(e));
    end();
  });
  try {
    for await (const batch of answers.batches()) yield create(LinkResponseSchema, { answers: batch });
  } finally {
    signal.removeEventListener("abort", end);
    end();
  }
}

/** Resolves when the asker has no more questions and every one that is no wait is answered. */
async function readQuestions(
  requests: AsyncIterable<LinkRequest>,
  answerers: Answerers,
  answers: BatchQueue<Answer>,
  ended: AbortSignal,
): Promise<void> {
  const waiters = new Map<bigint, AbortController>();
  const open = new Set<Promise<void>>();
  for await (const { questions } of requests) {
    for (const question of questions) {
      if (question.question.case === "forget") {
        waiters.get(question.question.value.questionId)?.abort(new Error("forgotten"));
        continue;
      }
      const answering = answerTo(question, answerers, waiters, ended).then((answer) => {
        open.delete(answering);
        if (answer) answers.push(answer);
      });
      if (!isWait(question.question)) open.add(answering);
    }
    await answers.room();
  }
  await Promise.all(open);
}

/** A wait may take for ever: a link does not stay open for it. */
function isWait({ case: kind }: Question["question"]): boolean {
  return kind === "awaitApproval" || kind === "awaitKeyring";
}

async function answerTo(
  { id, question }: Question,
  answerers: Answerers,
  waiters: Map<bigint, AbortController>,
  ended: AbortSignal,
): Promise<Answer | undefined> {
  try {
    switch (question.case) {
      case "authorize":
        return decided(id, await answerers.authorize(question.value));
      case "outcome":
        return recorded(id, await answerers.recordOutcome(question.value));
      case "deviceIdentity":
        return recorded(id, await answerers.recordDeviceIdentity(question.value));
      case "awaitApproval": {
        const { approvalId } = question.value;
        return await waitFor(id, waiters, ended, async (signal) =>
          decided(id, await answerers.awaitApproval(approvalId, signal)),
        );
      }
      case "awaitKeyring": {
        const { knownVersion } = question.value;
        return await waitFor(id, waiters, ended, async (signal) =>
          keyringsAnswer(id, await answerers.awaitKeyring(knownVersion, signal)),
        );
      }
      default:
        throw fault(
          ErrorReason.INVALID_INPUT,
          { field: "question", rule: "required" },
          { message: "nothing is asked" },
        );
    }
  } catch (e: unknown) {
    return failed(id, e, answerers);
  }
}

async function waitFor(
  id: bigint,
  waiters: Map<bigint, AbortController>,
  ended: AbortSignal,
  answer: (signal: AbortSignal) => Promise<Answer>,
): Promise<Answer | undefined> {
  const waiter = new AbortController();
  const drop = (): void => waiter.abort(ended.reason);
  waiters.set(id, waiter);
  ended.addEventListener("abort", drop, { once: true });
  try {
    if (ended.aborted) return undefined;
    return await answer(waiter.signal);
  } catch (e: unknown) {
    if (waiter.signal.aborted) return undefined;
    throw e;
  } finally {
    ended.removeEventListener("abort", drop);
    waiters.delete(id);
  }
}

function decided(id: bigint, decision: Decision): Answer {
  return create(AnswerSchema, { id, answer: { case: "decision", value: decision } });
}

function keyringsAnswer(id: bigint, keyrings: readonly SignedEnvelope[]): Answer {
  return create(AnswerSchema, { id, answer: { case: "keyrings", value: { keyrings: [...keyrings] } } });
}

function recorded(id: bigint, index: number): Answer {
  return create(AnswerSchema, { id, answer: { case: "recorded", value: { auditIndex: BigInt(index) } } });
}

function failed(id: bigint, error: unknown, answerers: Answerers): Answer {
  if (!faultDetail(error)) answerers.onError(error);
  const told = outageFault(error) ?? error;
  const known = faultDetail(told);
  const detail: ErrorDetail = known ?? create(ErrorDetailSchema, { reason: ErrorReason.INTERNAL });
  const message = known && told instanceof ConnectError ? told.rawMessage : "internal error";
  return create(AnswerSchema, { id, answer: { case: "failure", value: { error: detail, message } } });
}
