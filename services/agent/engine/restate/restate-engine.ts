import type { JsonValue } from "@bufbuild/protobuf";
import { isEnd } from "../../../../client/call-progress.ts";
import { completeCall } from "../../../../client/complete-call.ts";
import { reasonOf } from "../../../../client/errors.ts";
import { ErrorReason } from "../../../../gen/ts/reeve/common/v1/error_pb.ts";
import { every } from "../../../../lib/async/every.ts";
import type { Logger } from "../../../../lib/log/log.ts";
import { type CallEndsClient, createCallEnds } from "../../call-ends/call-ends.ts";
import { questionAnswer } from "../../loop/ask-user.ts";
import type { Steps } from "../../loop/steps.ts";
import { callAnswer } from "../../toolbox/toolbox.ts";
import type { RunEngine } from "../engine.ts";
import { type RestateAddress, restateSend } from "./restate-http.ts";
import type { StepPorts } from "./restate-steps.ts";
import { RUN_WORKFLOW } from "./run-workflow.ts";
import type { Wakers } from "./wakers.ts";
import { openWorkerEndpoint, type WorkerOptions } from "./worker-endpoint.ts";

/** What the engine asks of the rows of runs, which are the authority. */
export interface DurableRuns {
  /** Durable runs that have not ended. */
  open(): Promise<readonly { runId: string }[]>;
  /** Whether a run is to be canceled. Undefined where it has ended, or there is none. */
  request(runId: string): Promise<{ cancel: boolean } | undefined>;
  /** A person's answer to a question of a run; undefined until there is one. */
  answer(runId: string, questionId: string): Promise<string | undefined>;
}

/** What the engine is made of. */
export interface RestateEngineParts {
  ingress: RestateAddress;
  admin: RestateAddress;
  worker: Omit<WorkerOptions, "logger"> & {
    /** Where Restate reaches the worker, such as "http://127.0.0.1:7406". Default: where it listens. */
    url?: string;
  };
  runs: DurableRuns;
  wakers: Wakers;
  /** The registry, as the principal that a run's calls are made by. */
  clientOf(runId: string): Promise<CallEndsClient>;
  carry(runId: string, steps: Steps): Promise<void>;
  logger: Logger;
  /** How often to hand over what Restate has not got yet, and to look for calls whose watcher is gone, in milliseconds. Default 3000. */
  lookMs?: number;
}

const CALL = callAnswer("");
const QUESTION = questionAnswer("");

/**
 * Runs on Restate: it keeps what each step came to, and calls a worker again wherever one stopped. Opens the worker's endpoint
 * and registers it, as soon as Restate is available.
 */
export async function createRestateEngine(parts: RestateEngineParts): Promise<RunEngine> {
  const { ingress, admin, runs, wakers, clientOf, carry, logger, lookMs = 3000 } = parts;
  const runOf = new Map<string, string>();
  const handedOver = new Set<string>();
  let closed = false;

  const wake = async (runId: string): Promise<void> => {
    const waiting = await wakers.of(runId);
    if (waiting === undefined || waiting.waker === "") return;
    await restateSend(ingress, `/restate/awakeables/${waiting.waker}/resolve`, true);
  };
  const wakeSoon = (runId: string): void => {
    wake(runId).catch((err: unknown) => {
      if (!closed) logger.debug({ err, run_id: runId }, "run not woken yet");
    });
  };
  const callEnds = createCallEnds({
    onEnd(callId) {
      const runId = runOf.get(callId);
      runOf.delete(callId);
      if (runId !== undefined) wakeSoon(runId);
    },
  });
  const watchCall = async (runId: string, name: string): Promise<void> => {
    const callId = name.slice(CALL.length);
    runOf.set(callId, runId);
    callEnds.watch(callId, await clientOf(runId));
  };
  const isEnded = async (runId: string, name: string): Promise<boolean> => {
    const client = await clientOf(runId);
    try {
      const { call } = await client.getCall({ callId: name.slice(CALL.length) }, { timeoutMs: 20_000 });
      return call !== undefined && isEnd(completeCall(call).status.state);
    } catch (error: unknown) {
      // The loop looks at the call and reports that to the model.
      if (reasonOf(error) === ErrorReason.NOT_FOUND) return true;
      throw error;
    }
  };
  /** What came of one wait; undefined while nothing has. */
  const cameFor = async (runId: string, name: string): Promise<JsonValue | undefined> => {
    if (name.startsWith(CALL)) return (await isEnded(runId, name)) || undefined;
    return runs.answer(runId, name.slice(QUESTION.length));
  };
  const cameOf = async (runId: string, names: readonly string[]) => {
    const values = await Promise.all(names.map((name) => cameFor(runId, name)));
    const at = values.findIndex((value) => value !== undefined);
    const [name, value] = [names[at], values[at]];
    return name === undefined || value === undefined ? undefined : { name, value };
  };
  const stepPorts = (runId: string): StepPorts => ({
    isCanceled: async () => (await runs.request(runId))?.cancel ?? false,
    async waitFor(names, waker) {
      await wakers.set({ runId, waker, names });
      const came = await cameOf(runId, names);
      if (came !== undefined) return came;
      for (const name of names) if (name.startsWith(CALL)) await watchCall(runId, name);
      return undefined;
    },
  });

  const worker = await openWorkerEndpoint(
    {
      claim: async (runId, invocation) =>
        (await runs.request(runId)) !== undefined && (await wakers.claim(runId, invocation)),
      stepPorts,
      carry: async (runId, steps) => {
        await carry(runId, steps);
        await wakers.remove(runId);
      },
    },
    { ...parts.worker, logger },
  );
  const url = parts.worker.url ?? `http://${parts.worker.host}:${worker.port}`;
  let registered = false;
  const register = async (): Promise<void> => {
    if (registered) return;
    await restateSend(admin, "/deployments", { uri: url, force: true });
    registered = true;
    logger.info({ worker: url }, "durable runs ready");
  };
  const handOver = async (runId: string): Promise<void> => {
    if (!registered || handedOver.has(runId)) return;
    await restateSend(ingress, `/${RUN_WORKFLOW}/${encodeURIComponent(runId)}/run/send`);
    handedOver.add(runId);
  };
  const look = async (): Promise<void> => {
    await register();
    const open = new Set((await runs.open()).map(({ runId }) => runId));
    for (const runId of handedOver) if (!open.has(runId)) handedOver.delete(runId);
    for (const runId of open) await handOver(runId);
    for (const { runId, names, waker } of await wakers.all()) {
      if (!open.has(runId) || waker === "") continue;
      const questions = names.filter((name) => name.startsWith(QUESTION));
      const cancel = (await runs.request(runId))?.cancel ?? false;
      if (cancel || (await cameOf(runId, questions)) !== undefined) await wake(runId);
      for (const name of names) if (name.startsWith(CALL)) await watchCall(runId, name);
    }
  };
  const looking = every(lookMs, look, (err) => logger.warn({ err }, "durable runs wait for restate"));

  return {
    durable: true,
    async start(runId) {
      await handOver(runId).catch((err: unknown) => logger.debug({ err, run_id: runId }, "run not handed over yet"));
    },
    async answer(runId) {
      wakeSoon(runId);
    },
    async cancel(runId) {
      wakeSoon(runId);
    },
    async close() {
      closed = true;
      callEnds.close();
      await looking.stop();
      await worker.close();
    },
  };
}
