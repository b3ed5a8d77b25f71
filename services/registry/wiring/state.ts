import { join } from "node:path";
import { createOutbox, type Outbox } from "../../../lib/events/outbox.ts";
import { measureOutbox } from "../../../lib/events/outbox-metric.ts";
import { createOutboxRelay, type OutboxRelay } from "../../../lib/events/outbox-relay.ts";
import type { Sealer } from "../../../lib/identity/sealer.ts";
import type { Logger } from "../../../lib/log/log.ts";
import { type Database, dialectOf, openDatabase } from "../../../lib/store/database.ts";
import { type FolderLock, lockFolder } from "../../../lib/store/folder-lock.ts";
import { createGroupCommit, type GroupCommit } from "../../../lib/store/group-commit.ts";
import { keepLease } from "../../../lib/store/lease.ts";
import { type Bodies, createBodies } from "../calls/bodies.ts";
import { openBodies } from "../calls/open-bodies.ts";
import { newReplicaId } from "../cluster/membership.ts";
import type { RegistryConfig } from "../config.ts";
import type { Setup } from "../options.ts";
import { checkSealingKey, sealerOf } from "../sealing.ts";
import { type RegistryTables, registryMigrations } from "../tables.ts";

/** Where a registry keeps what it knows. */
export interface State {
  /** Undefined where replicas share the database. */
  folder: FolderLock | undefined;
  db: Database<RegistryTables>;
  sealer: Sealer;
  bodies: Bodies;
  /** This replica's id. */
  self: string;
  /** True where no other replica uses the database. */
  alone: boolean;
  /** The group commit of a database that other services of the process write to as well. */
  commits: GroupCommit<RegistryTables> | undefined;
}

/** Opens the state. Rejects with FolderInUse, before anything is read, where another process has the state folder. */
export async function openState(setup: Setup, parts: AsyncDisposableStack): Promise<State> {
  const { config, sealer: given, database } = setup;
  // What is in a database on a server is shared by replicas, which lease what they own there.
  const folder =
    config.databaseUrl === undefined
      ? lockFolder(config.stateDir, { program: "registry", setting: "REEVE_REGISTRY_STATE_DIR" })
      : undefined;
  parts.defer(() => folder?.release());
  const sealer = await sealerOf(config, given);
  const db = database?.db ?? parts.adopt(await openRegistryDatabase(config), (one) => one.destroy());
  await checkSealingKey(db, sealer);
  const alone = dialectOf(db) === "sqlite";
  const commits = database?.commits;
  return { folder, db, sealer, bodies: createBodies(sealer), self: newReplicaId(), alone, commits };
}

/** How calls and fan-outs are written, and what follows from their writes. */
export interface Writes {
  /** Each kind of write has transactions of its own, so that replicas never wait for each other in a circle. */
  writes: GroupCommit<RegistryTables>;
  outbox: Outbox;
  /** Publishes the events of the outbox. */
  relay: OutboxRelay;
}

/** Opens the writes, publishes the outbox's events and deletes bodies as the retention says, until `parts` are closed. */
export function openWrites(setup: Setup, { db, self, alone, commits }: State, parts: AsyncDisposableStack): Writes {
  const { config, bus, logger, now } = setup;
  const openOwn = () => createGroupCommit(db, { onLazyError: notWritten(logger) });
  const writes = commits ?? parts.adopt(openOwn(), (own) => own.close());
  const lease = alone ? undefined : keepLease({ db, table: "registry_leases", name: "registry-outbox", holder: self });
  parts.defer(() => lease?.close());
  const relay = createOutboxRelay({ db, table: "registry_outbox", writes, bus, logger, ...(lease && { lease }) });
  parts.defer(() => relay.close());
  measureOutbox(setup.metrics, relay.pending);
  openBodies({ db, retentionMs: config.callRetentionMs, self, logger, now }, parts);
  return { writes, outbox: createOutbox(db, "registry_outbox"), relay };
}

/** Logs that a lazy write has failed. */
export function notWritten(logger: Logger): (err: Error) => void {
  return (err) => logger.error({ err }, "a state that can be found out again was not written");
}

function openRegistryDatabase({ databaseUrl: url, stateDir }: RegistryConfig): Promise<Database<RegistryTables>> {
  const migrations = registryMigrations;
  return openDatabase(url === undefined ? { path: join(stateDir, "registry.db"), migrations } : { url, migrations });
}
