import type { EventBus } from "../../lib/events/bus.ts";
import { createOutbox, type Outbox, outboxMigration } from "../../lib/events/outbox.ts";
import { createOutboxRelay } from "../../lib/events/outbox-relay.ts";
import type { Logger } from "../../lib/log/log.ts";
import { openDatabase } from "../../lib/store/database.ts";
import { createGroupCommit } from "../../lib/store/group-commit.ts";
import { type RecordedWrites, recordedWrites } from "./recorded-writes.ts";
import { type PolicyDatabase, type PolicyTables, policyMigrations } from "./tables.ts";

/** Policy's database and what writes to it. */
export interface Storage {
  db: PolicyDatabase;
  writes: RecordedWrites;
  outbox: Outbox;
  /** Says that there is an event to publish. */
  nudge(): void;
  /** Finishes what was begun, then closes the database. */
  close(): Promise<void>;
}

/** Opens policy's database and starts to publish its outbox, where there is a bus. */
export async function openStorage(options: {
  path: string;
  bus: EventBus | undefined;
  logger: Logger;
  onError: (error: unknown) => void;
}): Promise<Storage> {
  const { path, bus, logger, onError } = options;
  const db = await openDatabase<PolicyTables>({ path, migrations: [...policyMigrations, outboxMigration] });
  const commits = createGroupCommit(db, { onLazyError: onError });
  const relay = bus && createOutboxRelay({ db, writes: commits, bus, logger });
  return {
    db,
    writes: recordedWrites(commits, onError),
    outbox: createOutbox(db),
    nudge: () => relay?.nudge(),
    async close() {
      await relay?.close();
      await commits.close();
      await db.destroy();
    },
  };
}
