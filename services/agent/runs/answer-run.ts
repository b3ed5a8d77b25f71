import type { Run } from "../../../gen/ts/reeve/agent/v1/run_pb.ts";
import type { AnswerRunRequest } from "../../../gen/ts/reeve/agent/v1/run_service_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { Principal } from "../../../lib/auth/principal.ts";
import { fault } from "../../../lib/fault/fault.ts";
import type { RunJournal } from "../engine/engine.ts";
import { questionAnswer } from "../loop/ask-user.ts";
import { answerKey } from "./answer-key.ts";
import type { Engines } from "./engines.ts";
import { changeableRun } from "./own-run.ts";
import type { RunStore } from "./store.ts";

/** What answering needs. */
export interface AnswerPorts {
  store: Pick<RunStore, "get" | "answer">;
  journal: Pick<RunJournal, "event">;
  engines: Engines;
}

/**
 * Stores a person's answer, then hands it to the run's engine. The first answer counts; the same one again is handed over
 * again. Throws NOT_FOUND for a question that the run does not ask, and RUN_ENDED for one that was answered otherwise.
 */
export async function answerRun(
  { store, journal, engines }: AnswerPorts,
  { runId, questionId, text }: AnswerRunRequest,
  principal: Principal,
): Promise<Run> {
  const run = await changeableRun(store, runId, principal);
  const { durable = false, waits = [] } = run.status ?? {};
  const isAsked = waits.some((wait) => wait.questionId === questionId);
  const known = await store.answer(runId, questionId);
  if (known === undefined && !isAsked) {
    const message = `the run ${runId} asks no question ${questionId}`;
    throw fault(ErrorReason.NOT_FOUND, { resource: `runs/${runId}/questions/${questionId}` }, { message });
  }
  if (known === undefined) {
    const answer = { questionId, text, principalId: principal.id };
    await journal.event(runId, answerKey(questionId), { case: "answer", value: answer });
  }
  const counts = known ?? (await store.answer(runId, questionId));
  if (counts?.text !== text) {
    const metadata = { run_id: runId, question_id: questionId };
    throw fault(ErrorReason.RUN_ENDED, metadata, { message: `the question ${questionId} was answered already` });
  }
  if (isAsked) await engines.of(durable).answer(runId, questionAnswer(questionId), text);
  return (await store.get(runId)) ?? run;
}
