import { setTimeout as sleep } from "node:timers/promises";
import { configSettings } from "../../../gen/settings/settings.ts";
import { every, type Repeated } from "../../../lib/async/every.ts";
import type { GroupCommit } from "../../../lib/store/group-commit.ts";
import type { RegistryTables } from "../tables.ts";

/** How long the bodies of ended calls are kept where the configuration says nothing, in milliseconds: 30 days. */
export const DEFAULT_CALL_RETENTION_MS = configSettings.callRetention.default;

/** How often to look for bodies whose time is over, in milliseconds. */
const INTERVAL_MS = 60_000;

/** How many calls lose their bodies in one transaction, and how long others have the database between two, in milliseconds. */
const BATCH = 100;
const PAUSE_MS = 50;

const NOTHING = new Uint8Array();

/** What keeping the retention needs. */
export interface CallRetentionOptions {
  writes: GroupCommit<RegistryTables>;
  /** From when the audit log has a call's end. */
  retentionMs: number;
  now(): number;
  /** False where another replica does it. */
  mayRun(): boolean;
  onError(error: unknown): void;
}

/**
 * Deletes arguments, outputs, purposes and error texts of calls that ended longer ago than the retention says, now and every
 * minute, in small batches. Skeletons, digests, decisions and the audit log stay, so that every proof holds as before.
 */
export function keepCallRetention({ writes, retentionMs, now, mayRun, onError }: CallRetentionOptions): Repeated {
  let stopped = false;
  const deleteBatch = (nowMs: number): Promise<number> =>
    writes.write(async (trx) => {
      const due = trx
        .selectFrom("calls")
        .select("row")
        .where("kept_from_ms", "<=", nowMs - retentionMs)
        .where("bodies_delete_ms", "is", null)
        .orderBy("kept_from_ms")
        .limit(BATCH);
      const nothing = { args: NOTHING, shown: null, result: null, bodies_delete_ms: nowMs };
      const [done] = await trx.updateTable("calls").set(nothing).where("row", "in", due).execute();
      return Number(done?.numUpdatedRows ?? 0n);
    });
  const deleteAll = async (): Promise<void> => {
    while (!stopped && mayRun() && (await deleteBatch(now())) === BATCH) await sleep(PAUSE_MS);
  };
  const repeated = every(INTERVAL_MS, deleteAll, onError);
  return {
    stop() {
      stopped = true;
      return repeated.stop();
    },
  };
}
