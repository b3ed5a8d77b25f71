import type { Logger } from "../../../lib/log/log.ts";
import { type Database, dialectOf } from "../../../lib/store/database.ts";
import { createGroupCommit } from "../../../lib/store/group-commit.ts";
import { keepLease } from "../../../lib/store/lease.ts";
import type { RegistryTables } from "../tables.ts";
import { DEFAULT_CALL_RETENTION_MS, keepCallRetention } from "./retention.ts";

/** Dependencies of the retention of bodies. */
export interface OpenBodiesOptions {
  db: Database<RegistryTables>;
  /** Default 30 days. */
  retentionMs: number | undefined;
  /** This replica. */
  self: string;
  logger: Logger;
  now(): number;
}

/** Deletes the bodies of calls as the retention says, until the stack is closed. */
export function openBodies(options: OpenBodiesOptions, opened: AsyncDisposableStack): void {
  const { db, retentionMs = DEFAULT_CALL_RETENTION_MS, self, logger, now } = options;
  const writes = createGroupCommit(db);
  opened.defer(() => writes.close());
  const lease =
    dialectOf(db) === "sqlite"
      ? undefined
      : keepLease({ db, table: "registry_leases", name: "registry-retention", holder: self });
  opened.defer(() => lease?.close());
  const retention = keepCallRetention({
    writes,
    retentionMs,
    now,
    mayRun: () => lease?.held ?? true,
    onError: (err) => logger.error({ err }, "call bodies not deleted"),
  });
  opened.defer(() => retention.stop());
}
