import type { Logger } from "../../../lib/log/log.ts";
import { type Database, dialectOf } from "../../../lib/store/database.ts";
import { createGroupCommit } from "../../../lib/store/group-commit.ts";
import { keepLease } from "../../../lib/store/lease.ts";
import type { RegistryTables } from "../tables.ts";
import type { Bodies } from "./bodies.ts";
import { DEFAULT_CALL_RETENTION_MS, keepCallRetention } from "./retention.ts";
import { sealOldCalls } from "./seal-old.ts";

/** What looking after the bodies of calls needs. */
export interface OpenBodiesOptions {
  db: Database<RegistryTables>;
  bodies: Bodies;
  /** Default 30 days. */
  retentionMs: number | undefined;
  /** This replica. */
  self: string;
  logger: Logger;
  now(): number;
}

/** Seals what a version before this left in clear, then deletes bodies as the retention says until the stack is closed. */
export async function openBodies(options: OpenBodiesOptions, opened: AsyncDisposableStack): Promise<void> {
  const { db, bodies, retentionMs = DEFAULT_CALL_RETENTION_MS, self, logger, now } = options;
  const writes = createGroupCommit(db);
  opened.defer(() => writes.close());
  const calls = await sealOldCalls({ db, writes, bodies, now });
  if (calls > 0) logger.info({ calls }, "calls of an earlier version sealed");
  const lease = dialectOf(db) === "sqlite" ? undefined : keepLease({ db, name: "registry-retention", holder: self });
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
