import { every } from "../../../../lib/async/every.ts";
import type { Logger } from "../../../../lib/log/log.ts";
import { createInlineSteps, type InlineSteps } from "../../loop/inline-steps.ts";
import type { RunEngine } from "../engine.ts";

/** What the engine needs of what is stored. */
export interface InlineRuns {
  /** Inline runs that have not ended, with the process that each is in. */
  open(): Promise<readonly { runId: string; owner: string }[]>;
  /** Whether the process that an open run is in is gone. */
  isGone(owner: string): Promise<boolean>;
  /** Ends a run whose process is gone, as far as it had come. */
  interrupt(runId: string): Promise<void>;
  /** What was asked of a run here or at another replica; undefined once it has ended. */
  requests(runId: string): Promise<{ cancel: boolean; answers: ReadonlyMap<string, string> } | undefined>;
}

/** What the engine is made of. */
export interface InlineEngineParts {
  runs: InlineRuns;
  carry(runId: string, steps: InlineSteps): Promise<void>;
  /** Whether other replicas share the database. */
  shared: boolean;
  logger: Logger;
  /** How often to look for runs whose process is gone, and for what was asked at other replicas, in milliseconds. Default 1000. */
  lookMs?: number;
}

interface Running {
  steps: InlineSteps;
  canceled: AbortController;
}

/** Runs in this process: they end with it, and the next start says so of each. */
export function createInlineEngine(parts: InlineEngineParts): RunEngine {
  const { runs, carry, shared, logger, lookMs = 1000 } = parts;
  const running = new Map<string, Running>();
  let closed = false;

  const start = (runId: string): void => {
    if (running.has(runId) || closed) return;
    const canceled = new AbortController();
    const steps = createInlineSteps(canceled.signal);
    running.set(runId, { steps, canceled });
    void carry(runId, steps)
      .catch((err: unknown) => {
        if (!closed) logger.error({ err, run_id: runId }, "run not written");
      })
      .finally(() => running.delete(runId));
  };
  const interruptLost = async (): Promise<void> => {
    const open = (await runs.open()).filter(({ runId }) => !running.has(runId));
    const gone = new Map<string, boolean>();
    for (const { runId, owner } of open) {
      if (!gone.has(owner)) gone.set(owner, await runs.isGone(owner));
      if (!gone.get(owner) || closed) continue;
      await runs.interrupt(runId);
      logger.info({ run_id: runId }, "run interrupted: its process is gone");
    }
  };
  const readRequests = async (): Promise<void> => {
    for (const [runId, { steps, canceled }] of running) {
      const asked = await runs.requests(runId);
      if (asked === undefined || asked.cancel) canceled.abort();
      for (const [name, text] of asked?.answers ?? []) steps.deliver(name, text);
    }
  };
  let looked = false;
  const looking = every(
    lookMs,
    async () => {
      // Alone, only an earlier process can have left runs behind.
      if (shared || !looked) await interruptLost();
      if (shared) await readRequests();
      looked = true;
    },
    (err) => logger.warn({ err }, "runs cannot be looked for"),
  );

  return {
    durable: false,
    start: async (runId) => start(runId),
    async answer(runId, name, value) {
      running.get(runId)?.steps.deliver(name, value);
    },
    async cancel(runId) {
      running.get(runId)?.canceled.abort();
    },
    async close() {
      closed = true;
      await looking.stop();
      // As after a kill: what they have handed to the registry goes on there, and the run says what is known of it.
      await Promise.all([...running.keys()].map((runId) => runs.interrupt(runId)));
    },
  };
}
