import type { ConnectRouter, ServiceImpl } from "@connectrpc/connect";
import { RunService } from "../../gen/ts/reeve/agent/v1/run_service_pb.ts";
import { principalOf } from "../../lib/server/context.ts";
import { type AnswerPorts, answerRun } from "./runs/answer-run.ts";
import { listRuns } from "./runs/list-runs.ts";
import { changeableRun, visibleRun } from "./runs/own-run.ts";
import { type StartPorts, startRun } from "./runs/start-run.ts";
import type { RunStore } from "./runs/store.ts";
import { type WatchPorts, watchRun } from "./runs/watch-run.ts";

/** What the RPCs need. */
export type AgentPorts = StartPorts &
  AnswerPorts &
  WatchPorts & {
    store: RunStore;
    /** Aborted when the service closes. */
    closing: AbortSignal;
  };

/** Registers the agent service's RPCs. */
export function agentRoutes(ports: AgentPorts): (router: ConnectRouter) => void {
  return (router) => router.service(RunService, runHandlers(ports));
}

function runHandlers(ports: AgentPorts) {
  const { store, engines, closing } = ports;
  return {
    async startRun(request, context) {
      const { run, warnings } = await startRun(ports, request, principalOf(context));
      return { ...(run && { run }), warnings: [...warnings] };
    },
    getRun: async ({ runId }, context) => ({ run: await visibleRun(store, runId, principalOf(context)) }),
    listRuns: (request, context) => listRuns(store, request, principalOf(context)),
    async *watchRun({ runId, fromSequence }, context) {
      await visibleRun(store, runId, principalOf(context));
      const signal = AbortSignal.any([context.signal, closing]);
      yield* watchRun(ports, { runId, from: fromSequence }, signal);
    },
    async cancelRun({ runId }, context) {
      const run = await changeableRun(store, runId, principalOf(context));
      const durable = run.status?.durable ?? false;
      if (await store.requestCancel(runId)) await engines.of(durable).cancel(runId);
      return { run: await visibleRun(store, runId, principalOf(context)) };
    },
    answerRun: async (request, context) => ({ run: await answerRun(ports, request, principalOf(context)) }),
  } satisfies ServiceImpl<typeof RunService>;
}
