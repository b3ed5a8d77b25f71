import { RunState } from "../../../gen/ts/reeve/agent/v1/run_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import type { Logger } from "../../../lib/log/log.ts";
import { runAgent } from "../loop/run.ts";
import type { Steps } from "../loop/steps.ts";
import type { Model } from "../providers/model.ts";
import type { RunInput } from "../run-input/run-input.ts";
import type { Toolbox } from "../toolbox/toolbox.ts";
import { endError } from "./end-error.ts";
import type { RunEnd, RunJournal, StoredRun } from "./engine.ts";
import { createReporter, endOf } from "./report.ts";

/** All that a worker is handed: plain JSON, kept in the run's row. */
export interface FrozenRun {
  /** The model, as provider/name. */
  model: string;
  /** The agent's configuration whose token its calls are made with; empty for the service's own. */
  agent: string;
  input: RunInput;
}

/** What a worker reaches the world through. */
export interface WorkerPorts {
  journal: RunJournal;
  modelFor(name: string): Promise<Model>;
  /** The way to call the tools of a run. Of an untrusted run it has no right to call any. */
  toolboxFor(run: StoredRun, frozen: FrozenRun): Toolbox;
  logger: Logger;
}

/**
 * Carries a stored run to its end, on whichever engine's steps: the same function for all of them. Resolves when the end is
 * on disk. Rejects only where the journal cannot be written.
 */
export async function carryRun(runId: string, { journal, modelFor, toolboxFor, logger }: WorkerPorts, steps: Steps) {
  const run = await journal.load(runId);
  if (run === undefined) throw new Error(`there is no run ${runId}`);
  await journal.started(runId);
  const reporter = createReporter(journal, runId);
  const frozen = run.input as unknown as FrozenRun;
  let end: RunEnd;
  try {
    refuseDevices(run, frozen);
    const ports = { model: await modelFor(frozen.model), toolbox: toolboxFor(run, frozen), onEvent: reporter.onEvent };
    const result = await runAgent(frozen.input, ports, steps);
    if (result.error !== undefined) logger.warn({ err: result.error, run_id: runId }, "run failed");
    end = endOf(result);
  } catch (error: unknown) {
    logger.warn({ err: error, run_id: runId }, "run not carried out");
    end = { ...NOTHING_DONE, error: endError(error) };
  }
  await reporter.written();
  await journal.end(runId, end);
}

const NOTHING_DONE = { state: RunState.FAILED, end: "error", text: "", turns: 0, usage: {}, calls: [] } as const;

/** Once more where it is carried out: the row says that it may have none, whatever the engine was handed. */
function refuseDevices({ untrusted }: StoredRun, { input: { toolset } }: FrozenRun): void {
  if (!untrusted || (toolset.devices.length === 0 && toolset.tools.length === 0)) return;
  const message = "a run over untrusted content has no devices";
  throw fault(ErrorReason.UNTRUSTED_CONTENT, { field: "input.toolset.devices" }, { message });
}
