import { stateName } from "../../client/call-progress.ts";
import { RunState } from "../../gen/ts/reeve/agent/v1/run_pb.ts";
import type { Logger } from "../../lib/log/log.ts";
import { createCallEnds } from "./call-ends/call-ends.ts";
import { carryRun, type FrozenRun } from "./engine/carry-run.ts";
import type { RunEngine, RunJournal, StoredRun } from "./engine/engine.ts";
import { createInlineEngine, type InlineRuns } from "./engine/inline/inline-engine.ts";
import { questionAnswer } from "./loop/ask-user.ts";
import type { InlineSteps } from "./loop/inline-steps.ts";
import { modelFor } from "./providers/model-for.ts";
import type { RegistryClients } from "./registry-clients.ts";
import { interruptRun } from "./runs/interrupt.ts";
import type { Replicas } from "./runs/replica.ts";
import { isEnded } from "./runs/states.ts";
import type { RunStore } from "./runs/store.ts";
import { createPatientToolbox } from "./toolbox/patient-toolbox.ts";
import { createRunToolbox } from "./toolbox/run-toolbox.ts";
import { callAnswer, type Toolbox } from "./toolbox/toolbox.ts";

/** What inline runs are made of. */
export interface InlineRunsParts {
  store: RunStore;
  journal: RunJournal;
  clients: RegistryClients;
  replicas: Replicas;
  shared: boolean;
  env: Readonly<Record<string, string | undefined>>;
  logger: Logger;
}

/** How long the registry is asked what became of a call, in milliseconds. */
const ASK_MS = 3000;

/** How many calls are followed on streams, of the 512 that a connection to the registry carries. */
const MAX_STREAMS = 256;

/** The engine of runs that live in this process. */
export function openInlineEngine(parts: InlineRunsParts): RunEngine {
  const { store, journal, clients, replicas, shared, env, logger } = parts;
  const callState = async (agent: string, callId: string): Promise<string | undefined> => {
    try {
      const { call } = await (await clients.of(agent)).getCall({ callId }, { timeoutMs: ASK_MS });
      return call?.status && stateName(call.status.state);
    } catch (err: unknown) {
      logger.warn({ err, call_id: callId }, "call of an interrupted run not found out");
      return undefined;
    }
  };
  const runs: InlineRuns = {
    open: () => store.open({ durable: false }),
    isGone: replicas.isGone,
    interrupt: (runId) => interruptRun({ store, journal, callState }, runId),
    async requests(runId) {
      const run = await journal.load(runId);
      if (run === undefined || isEnded(run.state)) return undefined;
      return { cancel: run.cancelRequested, answers: await answersOf(store, run) };
    },
  };
  const closing = new AbortController();
  /** By call, the run that waits for its end. */
  const waiting = new Map<string, InlineSteps>();
  const callEnds = createCallEnds({
    maxStreams: MAX_STREAMS,
    onEnd(callId) {
      waiting.get(callId)?.deliver(callAnswer(callId), true);
      waiting.delete(callId);
    },
  });
  const toolboxFor = (run: StoredRun, { agent, input }: FrozenRun, steps: InlineSteps): Toolbox => {
    const client = () => clients.ofRun(run, agent);
    const watch = (callId: string): void => {
      waiting.set(callId, steps);
      client().then(
        (one) => callEnds.watch(callId, one),
        (err: unknown) => logger.error({ err, call_id: callId }, "call not followed"),
      );
    };
    const toolbox = createRunToolbox(client, input);
    return createPatientToolbox({ toolbox, watch, canceled: steps.signal, closing: closing.signal });
  };
  const engine = createInlineEngine({
    runs,
    shared,
    logger,
    carry: (runId, steps) =>
      carryRun(
        runId,
        {
          journal,
          modelFor: (name) => modelFor(name, env),
          toolboxFor: (run, frozen) => toolboxFor(run, frozen, steps),
          logger,
        },
        steps,
      ),
  });
  return {
    ...engine,
    async close() {
      closing.abort();
      callEnds.close();
      await engine.close();
    },
  };
}

/** What people answered to the questions that a run waits for. */
async function answersOf(store: RunStore, { runId, state }: StoredRun): Promise<ReadonlyMap<string, string>> {
  const answers = new Map<string, string>();
  if (state !== RunState.WAITING) return answers;
  const run = await store.get(runId);
  for (const { questionId } of run?.status?.waits ?? []) {
    const answer = questionId === "" ? undefined : await store.answer(runId, questionId);
    if (answer !== undefined) answers.set(questionAnswer(questionId), answer.text);
  }
  return answers;
}
