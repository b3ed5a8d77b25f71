import type { Database } from "../../../lib/store/database.ts";
import { keepLease } from "../../../lib/store/lease.ts";
import { createLeaseRow } from "../../../lib/store/lease-row.ts";
import type { AgentTables } from "./tables.ts";

/** Which processes there are. */
export interface Replicas {
  /** Whether a process is gone, so that what ran in it runs no more. */
  isGone(owner: string): Promise<boolean>;
  close(): Promise<void>;
}

/** How long a process that says nothing counts as running, in milliseconds. */
const TTL_MS = 10_000;

/**
 * A folder has one process: any other is gone. Replicas that share a database each keep a lease there, and one whose lease
 * has run out is gone.
 */
export function openReplicas(db: Database<AgentTables>, self: string, shared: boolean): Replicas {
  if (!shared) return { isGone: async (owner) => owner !== self, close: async () => undefined };
  const nameOf = (owner: string) => `replica/${owner}`;
  const lease = keepLease({ db, table: "agent_leases", name: nameOf(self), holder: self, ttlMs: TTL_MS });
  return {
    async isGone(owner) {
      if (owner === self) return false;
      const options = { db, table: "agent_leases" as const, name: nameOf(owner), holder: self, ttlMs: TTL_MS };
      const row = createLeaseRow({ ...options, now: Date.now });
      const token = await row.take();
      if (token !== undefined) await row.giveBack(token);
      return token !== undefined;
    },
    close: () => lease.close(),
  };
}
