import { join } from "node:path";
import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import type { Registry as MetricsRegistry } from "prom-client";
import { RunService } from "../../gen/ts/reeve/agent/v1/run_service_pb.ts";
import { loadSealingKey } from "../../lib/identity/seal.ts";
import { sealerWith } from "../../lib/identity/sealer.ts";
import { createRandomHex } from "../../lib/ids/random-hex.ts";
import { timeOrderedId } from "../../lib/ids/time-ordered-id.ts";
import type { Logger } from "../../lib/log/log.ts";
import { dialectOf, openDatabase } from "../../lib/store/database.ts";
import { lockFolder } from "../../lib/store/folder-lock.ts";
import { createGroupCommit, type SharedDatabase } from "../../lib/store/group-commit.ts";
import { type AgentServiceConfig, DEFAULT_RETENTION_MS } from "./config.ts";
import { openDurableEngine } from "./durable-runs.ts";
import { openInlineEngine } from "./inline-runs.ts";
import { measureRuns } from "./metrics.ts";
import { createRegistryClients, type RegistryAccess } from "./registry-clients.ts";
import { agentRoutes } from "./routes.ts";
import { createChangeFeed } from "./runs/change-feed.ts";
import { createEngines } from "./runs/engines.ts";
import { freezeRun } from "./runs/freeze-run.ts";
import { createJournal, RUNS_LOCK } from "./runs/journal.ts";
import { openReplicas } from "./runs/replica.ts";
import { resolveSpec } from "./runs/resolve-spec.ts";
import { keepRetention } from "./runs/retention.ts";
import { createRunStore } from "./runs/store.ts";
import { type AgentTables, agentMigrations } from "./runs/tables.ts";
import { checkSealingKey, createTexts } from "./runs/texts.ts";

/** What the agent service is made of. */
export interface AgentServiceOptions {
  config: AgentServiceConfig;
  /** The database, where it is open already, with the service's tables; it stays open. Default: as the configuration says. */
  database?: SharedDatabase<AgentTables>;
  registry: RegistryAccess;
  /** Where keys and addresses of models are, and the tokens that agents' files name. */
  env: Readonly<Record<string, string | undefined>>;
  logger: Logger;
  /** Where the service's own metrics go. Default nowhere. */
  metrics?: MetricsRegistry;
  now?: () => number;
}

/** Models that work with tools, as runs. */
export interface AgentService {
  routes(router: ConnectRouter): void;
  services: DescService[];
  ready(): boolean;
  onListening(url: string): void;
  close(): Promise<void>;
}

/**
 * Opens the agent service on its state folder, and on the database that others may share. Nothing is dialed, and no model's
 * SDK loaded, before the first run. Rejects with FolderInUse where another process has the folder.
 */
export async function createAgentService(options: AgentServiceOptions): Promise<AgentService> {
  const { config, registry, env, logger, now = Date.now } = options;
  await using parts = new AsyncDisposableStack();
  const lock =
    config.databaseUrl === undefined
      ? lockFolder(config.stateDir, { program: "agent", setting: "REEVE_AGENT_STATE_DIR" })
      : undefined;
  parts.defer(() => lock?.release());
  const sealer = sealerWith(await loadSealingKey(config.sealingKeyFile ?? join(config.stateDir, "sealing.key")));
  const { db, commits } = await openStorage(options, parts);
  await checkSealingKey(db, sealer);
  const shared = dialectOf(db) === "postgres";
  const self = `agent-${createRandomHex()(6)}`;
  const onError = (err: unknown): void => logger.error({ err }, "agent service failed");

  const texts = createTexts(sealer);
  const store = createRunStore(db, commits, texts);
  const feed = createChangeFeed(store, { shared, onError });
  parts.defer(() => feed.close());
  const journal = createJournal({ db, writes: commits, texts, onChange: feed.notify, now });
  const clients = createRegistryClients(registry, { agentsDir: config.agentsDir, env });
  parts.defer(() => clients.close());
  const replicas = openReplicas(db, self, shared);
  parts.defer(() => replicas.close());
  const retentionMs = config.retentionMs ?? DEFAULT_RETENTION_MS;
  const retention = keepRetention({ writes: commits, texts, retentionMs, now, onError });
  parts.defer(() => retention.stop());
  measureRuns(options.metrics, store);
  const inline = openInlineEngine({ store, journal, clients, replicas, shared, env, logger });
  const durable =
    config.durable &&
    (await openDurableEngine({ config: config.durable, db, commits, store, journal, clients, env, logger }));
  const engines = createEngines(inline, durable);
  parts.defer(() => engines.close());

  const closing = new AbortController();
  const routes = agentRoutes({
    store,
    journal,
    feed,
    engines,
    resolve: (spec) => resolveSpec(spec, { agentsDir: config.agentsDir, model: config.model, env }),
    freeze: (runId, spec) => freezeRun(runId, spec, clients.of),
    newRunId: () => timeOrderedId("run", now()),
    now,
    self,
    closing: closing.signal,
  });
  const opened = parts.move();
  let closed: Promise<void> | undefined;
  return {
    routes,
    services: [RunService],
    ready: () => closed === undefined,
    onListening: (url) => lock?.listensAt(url),
    close() {
      closing.abort();
      closed ??= opened.disposeAsync();
      return closed;
    },
  };
}

async function openStorage(
  { database, config: { databaseUrl: url, stateDir } }: AgentServiceOptions,
  parts: AsyncDisposableStack,
): Promise<SharedDatabase<AgentTables>> {
  if (database !== undefined) return database;
  const migrations = agentMigrations;
  const place = url === undefined ? { path: join(stateDir, "agent.db") } : { url };
  const db = await openDatabase<AgentTables>({ ...place, migrations });
  parts.defer(() => db.destroy());
  const commits = createGroupCommit(db, { lock: RUNS_LOCK });
  parts.defer(() => commits.close());
  return { db, commits };
}
