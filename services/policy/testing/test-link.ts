import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import {
  type Answer,
  LinkRequestSchema,
  type PolicyService,
  type Question,
  QuestionSchema,
} from "../../../gen/ts/reeve/policy/v1/policy_service_pb.ts";
import { createBatchQueue } from "../../../lib/async/batch-queue.ts";

/** A link to policy as the registry holds it. */
export interface TestLink {
  /** Asks, and resolves with the answer. */
  ask(question: MessageInitShape<typeof QuestionSchema>["question"]): Promise<Answer["answer"]>;
  /** Asks and returns the question's number, without waiting. */
  send(question: MessageInitShape<typeof QuestionSchema>["question"]): bigint;
  /** Resolves with the numbers of all questions that were answered, when the stream has ended. */
  end(): Promise<bigint[]>;
}

/** Opens a link. */
export function openTestLink(client: Client<typeof PolicyService>): TestLink {
  const questions = createBatchQueue<Question>();
  const waiting = new Map<bigint, (answer: Answer["answer"]) => void>();
  const answered: bigint[] = [];
  let lastId = 0n;
  const requests = async function* () {
    for await (const batch of questions.batches()) yield create(LinkRequestSchema, { questions: batch });
  };
  const reading = (async () => {
    for await (const { answers } of client.link(requests())) {
      for (const { id, answer } of answers) {
        answered.push(id);
        waiting.get(id)?.(answer);
      }
    }
  })();
  const send: TestLink["send"] = (question) => {
    const id = ++lastId;
    questions.push(create(QuestionSchema, { id, ...(question && { question }) }));
    return id;
  };
  return {
    send,
    ask: (question) => new Promise((resolve) => void waiting.set(send(question), resolve)),
    async end() {
      questions.end();
      await reading;
      return answered;
    },
  };
}
