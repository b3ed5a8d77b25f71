import { handlers, type WorkflowContext, workflow } from "@restatedev/restate-sdk";
import type { Steps } from "../../loop/steps.ts";
import { createRestateSteps, type StepPorts } from "./restate-steps.ts";

/** The workflow's name at Restate. One of it for each run, by the run's id. */
export const RUN_WORKFLOW = "ReeveRun";

/** What the workflow of a run does its work with. */
export interface WorkflowPorts {
  /**
   * Makes an invocation the one that carries a run. False where the run has ended, where there is none, or where another
   * invocation has it: then nothing is done, however the invocation came about.
   */
  claim(runId: string, invocationId: string): Promise<boolean>;
  stepPorts(runId: string): StepPorts;
  /** Carries the run to its end on these steps. */
  carry(runId: string, steps: Steps): Promise<void>;
}

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

/**
 * Failed attempts are repeated for as long as it takes: a person can cancel the run. A replay that does not fit its journal,
 * which only another version of this code can cause, pauses the run instead of guessing.
 */
const OPTIONS = {
  retryPolicy: {
    maxAttempts: 2 ** 31 - 1,
    onMaxAttempts: "pause",
    initialInterval: 100,
    maxInterval: 20_000,
    exponentiationFactor: 2,
  },
  onJournalMismatchErrors: "pause",
  /** A run that waits leaves its worker after this time. */
  inactivityTimeout: 5000,
  /** The longest turn of a model, with all its tries, and some more: an attempt that runs longer is cut off. */
  abortTimeout: 30 * MINUTE,
  journalRetention: 0,
  enableLazyState: true,
} as const;

/** The workflow that carries one run, whose whole input is the run's id: everything else is in the run's row. */
export function runWorkflow(ports: WorkflowPorts) {
  return workflow({
    name: RUN_WORKFLOW,
    handlers: {
      run: handlers.workflow.workflow(OPTIONS, async (ctx: WorkflowContext) => {
        const runId = ctx.key;
        const mine = await ctx.run("claim", () => ports.claim(runId, ctx.request().id));
        if (mine) await ports.carry(runId, createRestateSteps(ctx, ports.stepPorts(runId)));
      }),
    },
    options: { workflowRetention: 7 * DAY },
  });
}
