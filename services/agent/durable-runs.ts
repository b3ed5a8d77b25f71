import type { Logger } from "../../lib/log/log.ts";
import type { Database } from "../../lib/store/database.ts";
import type { GroupCommit } from "../../lib/store/group-commit.ts";
import { carryRun, type FrozenRun } from "./engine/carry-run.ts";
import type { RunEngine, RunJournal, StoredRun } from "./engine/engine.ts";
import type { RestateAddress } from "./engine/restate/restate-http.ts";
import type { WakerTables } from "./engine/restate/wakers.ts";
import { modelFor } from "./providers/model-for.ts";
import type { RegistryClients } from "./registry-clients.ts";
import { isEnded } from "./runs/states.ts";
import type { RunStore } from "./runs/store.ts";
import type { AgentTables } from "./runs/tables.ts";
import { createRunToolbox } from "./toolbox/run-toolbox.ts";
import type { Toolbox } from "./toolbox/toolbox.ts";

/** Where durable runs are carried on. */
export interface DurableConfig {
  /** Restate's two APIs. */
  ingress: RestateAddress;
  admin: RestateAddress;
  /** The request identities of the Restate servers that may invoke the worker: "publickeyv1_…". At least one. */
  identityKeys: readonly string[];
  /** Where the worker listens for Restate. The same port at each start: Restate goes on with a run where it began. */
  workerHost: string;
  workerPort: number;
  /** Where Restate reaches the worker, and any other replica of it. Default: where it listens. */
  workerUrl?: string;
}

/** What durable runs are made of. */
export interface DurableRunsParts {
  config: DurableConfig;
  db: Database<AgentTables>;
  commits: GroupCommit<AgentTables>;
  store: RunStore;
  journal: RunJournal;
  clients: RegistryClients;
  env: Readonly<Record<string, string | undefined>>;
  logger: Logger;
}

/** The engine of runs that outlive this process. Its SDK is loaded here only. */
export async function openDurableEngine(parts: DurableRunsParts): Promise<RunEngine> {
  const { config, db, commits, store, journal, clients, env, logger } = parts;
  const { createRestateEngine } = await import("./engine/restate/restate-engine.ts");
  const { createWakers } = await import("./engine/restate/wakers.ts");
  /** By run, whom it calls as. */
  const callers = new Map<string, { agent: string; untrusted: boolean }>();
  const clientOf = async (runId: string) => {
    let known = callers.get(runId);
    if (known === undefined) {
      const run = await journal.load(runId);
      const { agent = "" } = (run?.input ?? {}) as Partial<FrozenRun>;
      known = { agent, untrusted: run?.untrusted ?? false };
      callers.set(runId, known);
    }
    return clients.ofRun(known, known.agent);
  };
  const toolboxFor = (run: StoredRun, { agent, input }: FrozenRun): Toolbox =>
    createRunToolbox(() => clients.ofRun(run, agent), input);
  return createRestateEngine({
    ingress: config.ingress,
    admin: config.admin,
    worker: {
      host: config.workerHost,
      port: config.workerPort,
      identityKeys: config.identityKeys,
      ...(config.workerUrl !== undefined && { url: config.workerUrl }),
    },
    runs: {
      open: () => store.open({ durable: true }),
      async request(runId) {
        const run = await journal.load(runId);
        return run === undefined || isEnded(run.state) ? undefined : { cancel: run.cancelRequested };
      },
      answer: async (runId, questionId) => (await store.answer(runId, questionId))?.text,
    },
    // The engine knows its own table only, which is one of the service's.
    wakers: createWakers(db as unknown as Database<WakerTables>, commits as unknown as GroupCommit<WakerTables>),
    clientOf,
    carry: (runId, steps) =>
      carryRun(runId, { journal, modelFor: (name) => modelFor(name, env), toolboxFor, logger }, steps),
    logger,
  });
}
