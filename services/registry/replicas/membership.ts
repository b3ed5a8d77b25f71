import { sql } from "kysely";
import type { Logger } from "../../../lib/log/log.ts";
import { type Database, dialectOf } from "../../../lib/store/database.ts";
import type { RegistryTables } from "../tables.ts";

/** Which replicas of the registry there are. Each holds a lease on being there: one small write, whatever it does. */
export interface Membership {
  /** This replica's id. */
  readonly self: string;
  /** Whether a replica's lease runs, as far as is known here. Always true for this one. */
  isAlive(replicaId: string): boolean;
  /**
   * Whether what a replica led may be taken over: it has left, or its lease is over and this replica has watched without
   * a break for as long as a lease lasts. So a database that was away for a while costs nobody its calls.
   */
  isGone(replicaId: string): boolean;
  /** The other replicas whose lease runs. */
  others(): string[];
  /** Calls back when replicas came or went. The result stops that. */
  onChange(listener: () => void): () => void;
  /** Looks at once. */
  look(): Promise<void>;
  /** Ends the lease. */
  close(): Promise<void>;
}

/** What membership rests on. */
export interface MembershipOptions {
  db: Database<RegistryTables>;
  self: string;
  logger: Logger;
  /** How long a lease lasts that is not renewed, in milliseconds. */
  ttlMs: number;
  /** How often it is renewed, in milliseconds. */
  renewMs: number;
  now(): number;
}

/** A longer break than so many renewals is one in which others may not have been able to renew theirs either. */
const BREAK_RENEWALS = 1.5;

/** Rows of replicas that never come back go after this many times the lease. */
const SWEEP_AFTER = 20;

/** Joins the registry's replicas. A SQLite file is one process's own: replicas of earlier starts are gone there. */
export async function joinReplicas(options: MembershipOptions): Promise<Membership> {
  const { db, self, ttlMs, renewMs, logger } = options;
  const alone = dialectOf(db) === "sqlite";
  // One clock for all leases: the database's, where several replicas share it.
  const clock = alone
    ? () => sql<number>`${sql.lit(options.now())}`
    : () => sql<number>`(extract(epoch from clock_timestamp()) * 1000)::bigint`;
  /** Until when the lease of each runs, on this process's own monotonic clock: no two clocks have to agree. */
  const seen = new Map<string, number>();
  const listeners = new Set<() => void>();
  let lastLook = Number.NEGATIVE_INFINITY;
  let watchedSince = 0;
  /** Who was there when the listeners were called last. */
  let told = "";
  let closed = false;

  const renew = async (): Promise<void> => {
    const expires = sql<number>`${clock()} + ${sql.lit(ttlMs)}`;
    await db
      .insertInto("replicas")
      .values({ id: self, started_ms: clock(), expires_ms: expires })
      .onConflict((conflict) => conflict.column("id").doUpdateSet({ expires_ms: expires }))
      .execute();
  };
  const look = async (): Promise<void> => {
    const rows = await db
      .selectFrom("replicas")
      .select(["id", sql<number>`expires_ms - ${clock()}`.as("left_ms")])
      .where("id", "<>", self)
      .execute();
    const at = performance.now();
    if (at - lastLook > BREAK_RENEWALS * renewMs) watchedSince = at;
    lastLook = at;
    // A lease also runs out between two looks: who asked then was told that nobody is there, and waits for a change.
    const answered = listAlive(at);
    seen.clear();
    for (const { id, left_ms } of rows) seen.set(id, at + left_ms);
    const alive = listAlive(at);
    if (alive === told && alive === answered) return;
    told = alive;
    for (const listener of listeners) listener();
  };
  const isAlive = (id: string): boolean => id === self || (seen.get(id) ?? 0) > performance.now();
  const listAlive = (at: number): string =>
    [...seen]
      .flatMap(([id, until]) => (until > at ? [id] : []))
      .sort()
      .join();
  const sweep = () =>
    db
      .deleteFrom("replicas")
      .where("expires_ms", "<", sql<number>`${clock()} - ${sql.lit(SWEEP_AFTER * ttlMs)}`)
      .execute();

  if (alone) await db.deleteFrom("replicas").execute();
  await renew();
  await look();
  let turns = 0;
  let turn: Promise<void> = Promise.resolve();
  const beat = async (): Promise<void> => {
    try {
      await renew();
      await look();
      if (++turns % 20 === 0) await sweep();
    } catch (error: unknown) {
      if (!closed) logger.warn({ err: error }, "this replica could not renew its lease");
    }
  };
  // Alone, nobody would read it.
  const timer = alone
    ? undefined
    : setInterval(() => {
        turn = turn.then(() => (closed ? undefined : beat()));
      }, renewMs);

  return {
    self,
    isAlive,
    isGone(id) {
      if (id === self) return false;
      const until = seen.get(id);
      return until === undefined || (until <= lastLook && lastLook - watchedSince >= ttlMs);
    },
    others: () => [...seen.keys()].filter(isAlive),
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    look,
    async close() {
      if (closed) return;
      closed = true;
      clearInterval(timer);
      await turn;
      await db.deleteFrom("replicas").where("id", "=", self).execute();
    },
  };
}
