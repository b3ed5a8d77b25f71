import { randomBytes } from "node:crypto";
import { sql } from "kysely";
import type { Logger } from "../../../lib/log/log.ts";
import { type Database, dialectOf } from "../../../lib/store/database.ts";
import type { RegistryTables } from "../tables.ts";

/** The replicas of the registry. Each renews one lease on its membership, however much it owns. */
export interface Membership {
  /** This replica's id. */
  readonly self: string;
  /** Whether a replica's lease is valid, as far as is known here. Always true for this one. */
  isAlive(replicaId: string): boolean;
  /**
   * Whether another replica may claim what this one owned: it has left, or its lease has expired and this replica has
   * watched without a break for as long as a lease lasts. So an outage of the database costs no replica its calls.
   */
  isGone(replicaId: string): boolean;
  /** The other replicas whose lease is valid. */
  others(): string[];
  /** Where another replica is reached; undefined for one that is not known or has not said. */
  addressOf(replicaId: string): string | undefined;
  /** Publishes where this replica is reached. */
  advertise(address: string): Promise<void>;
  /** Calls back when replicas came or went. Returns how to stop. */
  onChange(listener: () => void): () => void;
  /** Reads the members now. */
  look(): Promise<void>;
  /** Gives the lease up. */
  close(): Promise<void>;
}

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

/** After a pause of more renewals than this, the others may not have been able to renew their leases either. */
const BREAK_RENEWALS = 1.5;

/** A replica's row is deleted when its lease has been expired for this many times its length. */
const SWEEP_AFTER = 20;

/** A new replica id, such as "rep-1a2b3c4d5e6f": one for each start of a process. */
export function newReplicaId(): string {
  return `rep-${randomBytes(6).toString("hex")}`;
}

/** Joins the registry's replicas. A SQLite file belongs to one process: replicas of earlier starts are gone there. */
export async function joinCluster(options: MembershipOptions): Promise<Membership> {
  const { db, self, ttlMs, renewMs, logger } = options;
  const alone = dialectOf(db) === "sqlite";
  // One clock for all leases: the database's, where several replicas share it.
  const clock = alone
    ? () => sql<number>`${sql.lit(options.now())}`
    : () => sql<number>`(extract(epoch from clock_timestamp()) * 1000)::bigint`;
  /** Each lease's end on this process's own monotonic clock, so that no two clocks have to agree. */
  const known = new Map<string, { until: number; address: string }>();
  const listeners = new Set<() => void>();
  let ownAddress = "";
  let lastLook = Number.NEGATIVE_INFINITY;
  let watchedSince = 0;
  /** The members as of the last notification. */
  let notified = "";
  let closed = false;

  const renew = async (): Promise<void> => {
    const row = { expires_ms: sql<number>`${clock()} + ${sql.lit(ttlMs)}`, address: ownAddress };
    await db
      .insertInto("replicas")
      .values({ id: self, started_ms: clock(), ...row })
      .onConflict((conflict) => conflict.column("id").doUpdateSet(row))
      .execute();
  };
  const look = async (): Promise<void> => {
    const rows = await db
      .selectFrom("replicas")
      .select(["id", "address", sql<number>`expires_ms - ${clock()}`.as("left_ms")])
      .where("id", "<>", self)
      .execute();
    const at = performance.now();
    if (at - lastLook > BREAK_RENEWALS * renewMs) watchedSince = at;
    lastLook = at;
    // A lease may also expire between two looks: a caller that asked then found no member, and waits for a change.
    const answered = aliveAt(at);
    known.clear();
    for (const { id, address, left_ms } of rows) known.set(id, { until: at + left_ms, address });
    const alive = aliveAt(at);
    if (alive === notified && alive === answered) return;
    notified = alive;
    for (const listener of listeners) listener();
  };
  const isAlive = (id: string): boolean => id === self || (known.get(id)?.until ?? 0) > performance.now();
  const aliveAt = (at: number): string =>
    [...known]
      .flatMap(([id, { until }]) => (until > at ? [id] : []))
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
  const renewAndLook = async (): Promise<void> => {
    try {
      await renew();
      await look();
      if (++turns % 20 === 0) await sweep();
    } catch (error: unknown) {
      if (!closed) logger.warn({ err: error }, "replica lease not renewed");
    }
  };
  // In a SQLite file no other process would read it.
  const timer = alone
    ? undefined
    : setInterval(() => {
        turn = turn.then(() => (closed ? undefined : renewAndLook()));
      }, renewMs);

  return {
    self,
    isAlive,
    isGone(id) {
      if (id === self) return false;
      const until = known.get(id)?.until;
      return until === undefined || (until <= lastLook && lastLook - watchedSince >= ttlMs);
    },
    others: () => [...known.keys()].filter(isAlive),
    addressOf: (id) => known.get(id)?.address || undefined,
    async advertise(address) {
      ownAddress = address;
      turn = turn.then(() => (closed ? undefined : renewAndLook()));
      await turn;
    },
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
