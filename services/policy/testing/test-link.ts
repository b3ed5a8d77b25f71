import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import {
  ExchangeRequestSchema,
  type PolicyRequestFrame,
  PolicyRequestFrameSchema,
  type PolicyResponseFrame,
  type PolicyService,
} from "../../../gen/ts/reeve/policy/v1/policy_service_pb.ts";
import { createBatchQueue } from "../../../lib/async/batch-queue.ts";

/** A link to policy as the registry holds it. */
export interface TestLink {
  /** Asks, and resolves with the answer. */
  ask(request: MessageInitShape<typeof PolicyRequestFrameSchema>["request"]): Promise<PolicyResponseFrame["response"]>;
  /** Asks and returns the question's number, without waiting. */
  send(request: MessageInitShape<typeof PolicyRequestFrameSchema>["request"]): bigint;
  /** Resolves with the numbers of all questions that were answered, when the stream has ended. */
  end(): Promise<bigint[]>;
}

export function openTestLink(client: Client<typeof PolicyService>): TestLink {
  const questions = createBatchQueue<PolicyRequestFrame>();
  const waiting = new Map<bigint, (response: PolicyResponseFrame["response"]) => void>();
  const answered: bigint[] = [];
  let lastId = 0n;
  const requests = async function* () {
    for await (const batch of questions.batches()) yield create(ExchangeRequestSchema, { frames: batch });
  };
  const reading = (async () => {
    for await (const { frames } of client.exchange(requests())) {
      for (const { id, response } of frames) {
        answered.push(id);
        waiting.get(id)?.(response);
      }
    }
  })();
  const send: TestLink["send"] = (request) => {
    const id = ++lastId;
    questions.push(create(PolicyRequestFrameSchema, { id, ...(request && { request }) }));
    return id;
  };
  return {
    send,
    ask: (request) => new Promise((resolve) => void waiting.set(send(request), resolve)),
    async end() {
      questions.end();
      await reading;
      return answered;
    },
  };
}
