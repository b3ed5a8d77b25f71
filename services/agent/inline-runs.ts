import { stateName } from "../../client/call-progress.ts";
import { RunState } from "../../gen/ts/reeve/agent/v1/run_pb.ts";
import type { Logger } from "../../lib/log/log.ts";
import { carryRun, type FrozenRun } from "./engine/carry-run.ts";
import type { RunEngine, RunJournal, StoredRun } from "./engine/engine.ts";
import { createInlineEngine, type InlineRuns } from "./engine/inline/inline-engine.ts";
import { questionAnswer } from "./loop/ask-user.ts";
import { modelFor } from "./providers/model-for.ts";
import type { RegistryClients } from "./registry-clients.ts";
import { interruptRun } from "./runs/interrupt.ts";
import type { Replicas } from "./runs/replica.ts";
import { isEnded } from "./runs/states.ts";
import type { RunStore } from "./runs/store.ts";
import { createFollowedToolbox, type ToolCaller } from "./toolbox/followed-toolbox.ts";
import { createRegistryCaller } from "./toolbox/registry-caller.ts";

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
  return createInlineEngine({
    runs,
    shared,
    logger,
    carry: (runId, steps) =>
      carryRun(
        runId,
        {
          journal,
          modelFor: (name) => modelFor(name, env),
          toolboxFor: (run, frozen) => createFollowedToolbox(callerOf(run, frozen, clients), steps.deliver),
          logger,
        },
        steps,
      ),
  });
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

/** Calls through the registry. With what an untrusted run calls, the registry refuses every tool. */
function callerOf({ untrusted }: StoredRun, { agent, input }: FrozenRun, clients: RegistryClients): ToolCaller {
  const { toolset, purpose, maxWaitSeconds } = input;
  let caller: Promise<ToolCaller> | undefined;
  const open = async (): Promise<ToolCaller> => {
    const client = await (untrusted ? clients.untrusted() : clients.of(agent));
    return createRegistryCaller({ client, toolset, purpose, approvalWaitMs: maxWaitSeconds * 1000 });
  };
  return {
    async call(request, signal) {
      caller ??= open();
      return (await caller).call(request, signal);
    },
  };
}
