import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import {
  type CallOutcome,
  CallOutcomeSchema,
  type DeviceIdentity,
  DeviceIdentitySchema,
} from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { SignedEnvelope } from "../../../gen/ts/reeve/common/v1/signed_pb.ts";
import {
  type Decision,
  type DecisionRequest,
  DecisionRequestSchema,
} from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import {
  type Answer,
  AwaitApprovalSchema,
  AwaitKeyringSchema,
  ForgetSchema,
  type LinkRequest,
  LinkRequestSchema,
  type LinkResponse,
  type Question,
  QuestionSchema,
} from "../../../gen/ts/reeve/policy/v1/policy_service_pb.ts";
import { fault, isRetryable } from "../../../lib/fault/fault.ts";
import { keepLinked } from "../../../lib/link/keep-linked.ts";
import type { LinkOpener } from "../../../lib/link/opener.ts";

/** The way to policy's end of a link. */
export type PolicyOpener = LinkOpener<LinkRequest, LinkResponse>;

/** The registry's way to policy: many questions on one stream, each asked again after a break until it is answered. */
export interface PolicyLink {
  /**
   * Decides about a call. POLICY_UNAVAILABLE when no answer came within the time limit. While policy does not answer at all,
   * the link is tried at once and a new call waits half a second for it; one that was on its way when the link broke waits
   * the whole time, because policy may have decided about it.
   */
  authorize(request: DecisionRequest): Promise<Decision>;
  /** Waits for as long as it takes until a held call is decided. Rejects with the signal's reason when it aborts. */
  awaitApproval(approvalId: string, signal: AbortSignal): Promise<Decision>;
  /** Writes down how a call ended and returns the record's index. Waits for policy for as long as it takes. */
  recordOutcome(outcome: CallOutcome): Promise<bigint>;
  /** Writes down what became of a device's identity and returns the record's index. Waits as long as it takes. */
  recordIdentity(change: DeviceIdentity): Promise<bigint>;
  /**
   * The keyrings for grants, as soon as there is a version above the known one: those that lead to the newest, the oldest
   * first. Rejects with the signal's reason when it aborts.
   */
  awaitKeyring(knownVersion: bigint, signal: AbortSignal): Promise<readonly SignedEnvelope[]>;
  /** Whether policy answers on the stream that is open. */
  readonly up: boolean;
  /** Whether it has not for half a second, longer than a link takes to be made anew. */
  readonly away: boolean;
  close(): Promise<void>;
}

/** From an answer that says to try again to the next question, in milliseconds. */
const AGAIN_MS = 500;

/** How long a link that broke, or is new, has until policy counts as away, and a new call waits for it. Milliseconds. */
const GRACE_MS = 500;

/** The id of the question that is asked first on each stream, whose answer only shows that there is somebody. */
const HELLO = 0n;

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
  let downSince = performance.now();
  let lastId = HELLO;
  const downFor = () => (up ? 0 : performance.now() - downSince);

  const link = keepLinked<Question, Answer>({
    async *open(outgoing, signal) {
      for await (const response of opener(requests(outgoing), signal)) yield response.answers;
    },
    sizeOf: ({ question }) =>
      question.case === "authorize"
        ? question.value.arguments.length +
          (question.value.tool?.inputSchema.length ?? 0) +
          2048 +
          question.value.devices.length * 512
        : 512,
    onUp() {
      link.send(hello());
      // Every question can be asked twice: policy answers a call id it knows with the decision it made.
      for (const { question } of pending.values()) link.send(question);
    },
    onDown() {
      if (up) downSince = performance.now();
      up = false;
    },
    receive(answers) {
      up = true;
      for (const { id, answer } of answers) {
        const waiting = pending.get(id);
        pending.delete(id);
        waiting?.resolve(answer);
      }
    },
  });

  const ask = (question: Question["question"], give: Patience) =>
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
    get away() {
      return downFor() >= GRACE_MS;
    },
    async authorize(request) {
      if (!up) link.hurry();
      const answer = await ask({ case: "authorize", value: create(DecisionRequestSchema, request) }, (reject) => {
        const giveUp = () => reject(unavailable());
        const timer = setTimeout(giveUp, options.timeoutMs ?? 10_000);
        if (up) return () => clearTimeout(timer);
        const grace = setTimeout(() => up || giveUp(), GRACE_MS);
        return () => {
          clearTimeout(timer);
          clearTimeout(grace);
        };
      });
      return decisionOf(answer);
    },
    async awaitApproval(approvalId, signal) {
      signal.throwIfAborted();
      const question = create(AwaitApprovalSchema, { approvalId });
      for (;;) {
        const answer = await ask({ case: "awaitApproval", value: question }, untilAborted(signal));
        // The human has not said no because policy's database was away for a moment.
        if (answer.case !== "failure" || !isRetryable(failureOf(answer))) return decisionOf(answer);
        await sleep(AGAIN_MS, undefined, { signal });
      }
    },
    async recordOutcome(outcome) {
      return indexOf(await ask({ case: "outcome", value: create(CallOutcomeSchema, outcome) }, forEver));
    },
    async recordIdentity(change) {
      return indexOf(await ask({ case: "deviceIdentity", value: create(DeviceIdentitySchema, change) }, forEver));
    },
    async awaitKeyring(knownVersion, signal) {
      signal.throwIfAborted();
      const question = create(AwaitKeyringSchema, { knownVersion });
      const answer = await ask({ case: "awaitKeyring", value: question }, untilAborted(signal));
      if (answer.case === "keyrings") return answer.value.keyrings;
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

/** How long a question waits: gives it up by `reject`, and returns what stops that. */
type Patience = (reject: (error: unknown) => void) => () => void;

const forEver: Patience = () => () => undefined;

function untilAborted(signal: AbortSignal): Patience {
  return (reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    return () => signal.removeEventListener("abort", onAbort);
  };
}

async function* requests(batches: AsyncIterable<Question[]>) {
  for await (const questions of batches) yield create(LinkRequestSchema, { questions });
}

/** One that every policy answers at once: there is always a keyring above version 0. */
function hello(): Question {
  const question = { case: "awaitKeyring", value: create(AwaitKeyringSchema, {}) } as const;
  return create(QuestionSchema, { id: HELLO, question });
}

function forget(questionId: bigint): Question {
  return create(QuestionSchema, { question: { case: "forget", value: create(ForgetSchema, { questionId }) } });
}

function decisionOf(answer: Answer["answer"]): Decision {
  if (answer.case === "decision") return answer.value;
  throw failureOf(answer);
}

function indexOf(answer: Answer["answer"]): bigint {
  if (answer.case === "recorded") return answer.value.auditIndex;
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
