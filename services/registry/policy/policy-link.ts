import { create } from "@bufbuild/protobuf";
import { type Outcome, OutcomeSchema } from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import {
  type Decision,
  type DecisionRequest,
  DecisionRequestSchema,
} from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import {
  type Answer,
  AwaitApprovalSchema,
  ForgetSchema,
  type LinkRequest,
  LinkRequestSchema,
  type LinkResponse,
  type Question,
  QuestionSchema,
} from "../../../gen/ts/reeve/policy/v1/policy_service_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { keepLinked } from "../../../lib/link/keep-linked.ts";
import type { LinkOpener } from "../../../lib/link/opener.ts";

/** The way to policy's end of a link. */
export type PolicyOpener = LinkOpener<LinkRequest, LinkResponse>;

/** The registry's way to policy: many questions on one stream, each asked again after a break until it is answered. */
export interface PolicyLink {
  /** Decides about a call. POLICY_UNAVAILABLE when no answer came within the time limit. */
  authorize(request: DecisionRequest): Promise<Decision>;
  /** Waits for as long as it takes until a held call is decided. Rejects with the signal's reason when it aborts. */
  awaitApproval(approvalId: string, signal: AbortSignal): Promise<Decision>;
  /** Writes down how a call ended and returns the record's index. Waits for policy for as long as it takes. */
  recordOutcome(outcome: Outcome): Promise<bigint>;
  /** Whether the stream is open. */
  readonly up: boolean;
  close(): Promise<void>;
}

interface Pending {
  question: Question;
  resolve(answer: Answer["answer"]): void;
  /** Stops waiting for a time or a signal. */
  release(): void;
}

/**
 * @param options.timeoutMs how long `authorize` waits for an answer, breaks included. Default 10000.
 */
export function createPolicyLink(opener: PolicyOpener, options: { timeoutMs?: number } = {}): PolicyLink {
  const pending = new Map<bigint, Pending>();
  let up = false;
  let lastId = 0n;

  const link = keepLinked<Question, Answer>({
    async *open(outgoing, signal) {
      for await (const response of opener(requests(outgoing), signal)) yield response.answers;
    },
    sizeOf: ({ question }) => (question.case === "authorize" ? question.value.arguments.length + 2048 : 512),
    onUp() {
      up = true;
      // Every question can be asked twice: policy answers a call id it knows with the decision it made.
      for (const { question } of pending.values()) link.send(question);
    },
    onDown() {
      up = false;
    },
    receive(answers) {
      for (const { id, answer } of answers) {
        const waiting = pending.get(id);
        pending.delete(id);
        waiting?.resolve(answer);
      }
    },
  });

  const ask = (question: Question["question"], give: (reject: (error: unknown) => void) => () => void) =>
    new Promise<Answer["answer"]>((resolve, reject) => {
      const id = ++lastId;
      const asked = create(QuestionSchema, { id, question });
      const release = give((error) => {
        if (!pending.delete(id)) return;
        link.send(forget(id));
        reject(error);
      });
      pending.set(id, {
        question: asked,
        release,
        resolve: (answer) => {
          release();
          resolve(answer);
        },
      });
      link.send(asked);
    });

  return {
    get up() {
      return up;
    },
    async authorize(request) {
      const answer = await ask({ case: "authorize", value: create(DecisionRequestSchema, request) }, (reject) => {
        const timer = setTimeout(() => reject(unavailable()), options.timeoutMs ?? 10_000);
        return () => clearTimeout(timer);
      });
      return decisionOf(answer);
    },
    async awaitApproval(approvalId, signal) {
      signal.throwIfAborted();
      const question = create(AwaitApprovalSchema, { approvalId });
      const answer = await ask({ case: "awaitApproval", value: question }, (reject) => {
        const onAbort = () => reject(signal.reason);
        signal.addEventListener("abort", onAbort, { once: true });
        return () => signal.removeEventListener("abort", onAbort);
      });
      return decisionOf(answer);
    },
    async recordOutcome(outcome) {
      const answer = await ask({ case: "outcome", value: create(OutcomeSchema, outcome) }, () => () => undefined);
      if (answer.case === "recorded") return answer.value.auditIndex;
      throw failureOf(answer);
    },
    // What waits is left open: the next start asks again.
    close() {
      for (const { release } of pending.values()) release();
      pending.clear();
      return link.close();
    },
  };
}

async function* requests(batches: AsyncIterable<Question[]>) {
  for await (const questions of batches) yield create(LinkRequestSchema, { questions });
}

function forget(questionId: bigint): Question {
  return create(QuestionSchema, { question: { case: "forget", value: create(ForgetSchema, { questionId }) } });
}

function decisionOf(answer: Answer["answer"]): Decision {
  if (answer.case === "decision") return answer.value;
  throw failureOf(answer);
}

function failureOf(answer: Answer["answer"]): Error {
  if (answer.case !== "failure") return fault(ErrorReason.INTERNAL, {}, { message: "policy sent no answer" });
  const { error, message } = answer.value;
  return fault(error?.reason ?? ErrorReason.INTERNAL, error?.metadata ?? {}, { message });
}

function unavailable(): Error {
  return fault(
    ErrorReason.POLICY_UNAVAILABLE,
    {},
    { message: "policy does not answer, and without a decision on record nothing runs" },
  );
}
