import type { EventBus } from "../../../lib/events/bus.ts";
import { createOutbox, type Outbox } from "../../../lib/events/outbox.ts";
import { createOutboxRelay } from "../../../lib/events/outbox-relay.ts";
import type { Logger } from "../../../lib/log/log.ts";
import { dialectOf, openDatabase } from "../../../lib/store/database.ts";
import { createGroupCommit, type SharedDatabase } from "../../../lib/store/group-commit.ts";
import { keepLease, type Lease } from "../../../lib/store/lease.ts";
import { type RecordedWrites, recordedWrites } from "./recorded-writes.ts";
import { type PolicyDatabase, type PolicyTables, policyMigrations } from "./tables.ts";

/**
 * The right to build the log's tree and to sign its head: one replica has it at a time. The order of the records is not
 * its business: the transaction's lock gives each its index.
 */
export type Sequencer = Lease;

/** The sequencer of a database that one process has for itself. */
export const ALONE: Sequencer = {
  held: true,
  token: 0,
  check: async () => {},
  onChange: () => () => {},
  close: async () => {},
};

/** Policy's database and what writes to it. */
export interface Storage {
  db: PolicyDatabase;
  /** Whether other replicas may write to the database as well. */
  shared: boolean;
  writes: RecordedWrites;
  outbox: Outbox;
  /** Which replica signs the log's head and publishes the events. */
  sequencer: Sequencer;
  /** A hint that there is an event to publish. */
  wakeRelay(): void;
  /** Finishes what was begun, then closes the database, unless it was open before. */
  close(): Promise<void>;
}

export interface StorageOptions {
  /** A PostgreSQL URL, the path of a SQLite file, or a database that is open. */
  database: { url: string } | { path: string } | SharedDatabase<PolicyTables>;
  /** This replica's id, unique for each start. */
  replicaId: string;
  bus: EventBus | undefined;
  logger: Logger;
  onError: (error: unknown) => void;
}

/** All batches of writes of all replicas run one after another under this lock. */
const LOG_LOCK = "reeve-policy-log";

/** The lease of the replica that signs checkpoints. */
const SEQUENCER_LEASE = "audit-sequencer";

/** Brings a database's schema up to date, as every start of policy does, and does nothing else. */
export async function migratePolicy(url: string): Promise<void> {
  const db = await openDatabase<PolicyTables>({ url, migrations: policyMigrations });
  await db.destroy();
}

/** Opens policy's database and starts to publish its outbox, where there is a bus. */
export async function openStorage(options: StorageOptions): Promise<Storage> {
  const { database, replicaId, bus, logger, onError } = options;
  const { db, commits, close } = await openStore(database, onError);
  const shared = dialectOf(db) === "postgres";
  const sequencer = shared
    ? keepLease({ db, table: "policy_leases", name: SEQUENCER_LEASE, holder: replicaId, onError })
    : ALONE;
  const relay =
    bus &&
    createOutboxRelay({
      db,
      table: "policy_outbox",
      writes: commits,
      bus,
      logger,
      ...(shared && { lease: sequencer }),
    });
  return {
    db,
    shared,
    writes: recordedWrites(commits, onError),
    outbox: createOutbox(db, "policy_outbox"),
    sequencer,
    wakeRelay: () => relay?.wake(),
    async close() {
      await using closing = new AsyncDisposableStack();
      closing.defer(close.database);
      closing.defer(() => sequencer.close());
      closing.defer(close.commits);
      closing.defer(async () => relay?.close());
    },
  };
}

/** The database and its group commit, with what closes each: nothing, where both are another one's. */
async function openStore(database: StorageOptions["database"], onError: (error: unknown) => void) {
  if ("commits" in database) {
    const leave = async (): Promise<void> => undefined;
    return { ...database, close: { database: leave, commits: leave } };
  }
  const db = await openDatabase<PolicyTables>({ ...database, migrations: policyMigrations });
  const commits = createGroupCommit(db, { onLazyError: onError, lock: LOG_LOCK });
  return { db, commits, close: { database: () => db.destroy(), commits: () => commits.close() } };
}
