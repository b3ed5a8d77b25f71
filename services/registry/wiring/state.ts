import { join } from "node:path";
import { createOutbox, type Outbox } from "../../../lib/events/outbox.ts";
import { measureOutbox } from "../../../lib/events/outbox-metric.ts";
import { createOutboxRelay, type OutboxRelay } from "../../../lib/events/outbox-relay.ts";
import type { Sealer } from "../../../lib/identity/sealer.ts";
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
}

/** Opens the state. Rejects with FolderInUse, before anything is read, where another process has the state folder. */
export async function openState({ config, sealer: given }: Setup, parts: AsyncDisposableStack): Promise<State> {
  // What is in a database on a server is shared by replicas, which lease what they own there.
  const folder =
    config.databaseUrl === undefined
      ? lockFolder(config.stateDir, { program: "registry", setting: "REEVE_REGISTRY_STATE_DIR" })
      : undefined;
  parts.defer(() => folder?.release());
  const sealer = await sealerOf(config, given);
  const db = parts.adopt(await openRegistryDatabase(config), (one) => one.destroy());
  await checkSealingKey(db, sealer);
  const alone = dialectOf(db) === "sqlite";
  return { folder, db, sealer, bodies: createBodies(sealer), self: newReplicaId(), alone };
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
export function openWrites(setup: Setup, { db, self, alone }: State, parts: AsyncDisposableStack): Writes {
  const { config, bus, logger, now } = setup;
  const writes = createGroupCommit(db, {
    onLazyError: (err) => logger.error({ err }, "a state that can be found out again was not written"),
  });
  parts.defer(() => writes.close());
  const lease = alone ? undefined : keepLease({ db, table: "registry_leases", name: "registry-outbox", holder: self });
  parts.defer(() => lease?.close());
  const relay = createOutboxRelay({ db, table: "registry_outbox", writes, bus, logger, ...(lease && { lease }) });
  parts.defer(() => relay.close());
  measureOutbox(setup.metrics, relay.pending);
  openBodies({ db, retentionMs: config.callRetentionMs, self, logger, now }, parts);
  return { writes, outbox: createOutbox(db, "registry_outbox"), relay };
}

function openRegistryDatabase({ databaseUrl: url, stateDir }: RegistryConfig): Promise<Database<RegistryTables>> {
  const migrations = registryMigrations;
  return openDatabase(url === undefined ? { path: join(stateDir, "registry.db"), migrations } : { url, migrations });
}
