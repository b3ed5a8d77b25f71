import { type Kysely, type RawBuilder, sql } from "kysely";
import { type Database, dialectOf, type Migration } from "./database.ts";

/** The table of leases; part of the database whose work they guard. */
export interface LeaseTables {
  leases: {
    name: string;
    /** Who holds it, or held it last; empty once it was given back. */
    holder: string;
    /** Rises with each new holding. */
    token: number;
    /** When it runs out, in milliseconds since 1970. */
    expires_ms: number;
  };
}

/** Makes the table of leases. */
export const leaseMigration: Migration = {
  name: "lease_0001",
  async up(db) {
    await db.schema
      .createTable("leases")
      .addColumn("name", "text", (column) => column.primaryKey())
      .addColumn("holder", "text", (column) => column.notNull())
      .addColumn("token", "bigint", (column) => column.notNull())
      .addColumn("expires_ms", "bigint", (column) => column.notNull())
      .execute();
  },
};

/** One lease, as one holder sees it. */
export interface LeaseRow {
  /** Takes it where it is free, or where this holder has it without knowing; resolves with the new token. */
  take(): Promise<number | undefined>;
  /** False where the holding is over. */
  renew(token: number): Promise<boolean>;
  giveBack(token: number): Promise<void>;
  /** Whether the holding is the newest one; until the transaction ends that cannot change. */
  isHeld<T extends LeaseTables>(trx: Kysely<T>, token: number): Promise<boolean>;
}

/** What a row needs. */
export interface LeaseRowOptions<T extends LeaseTables> {
  db: Database<T>;
  name: string;
  holder: string;
  ttlMs: number;
  /** Milliseconds since 1970, for SQLite. */
  now: () => number;
}

/** Changes of one row of the table. */
export function createLeaseRow<T extends LeaseTables>(options: LeaseRowOptions<T>): LeaseRow {
  const { name, holder, ttlMs, now } = options;
  // The other tables do not matter here, and Kysely's types cannot say so.
  const db = options.db as unknown as Kysely<LeaseTables>;
  const isPostgres = dialectOf(db) === "postgres";
  // Of the moment and not of the statement's begin: a statement may wait for another one's lock on the row.
  const clock = (): RawBuilder<number> =>
    isPostgres
      ? sql<number>`(extract(epoch from clock_timestamp()) * 1000)::bigint`
      : sql<number>`${Math.round(now())}`;
  const expiry = () => sql<number>`${clock()} + ${sql.lit(ttlMs)}`;
  return {
    async take() {
      const taken = await db
        .insertInto("leases")
        .values({ name, holder, token: 1, expires_ms: expiry() })
        .onConflict((conflict) =>
          conflict
            .column("name")
            .doUpdateSet((eb) => ({ holder, token: eb("leases.token", "+", 1), expires_ms: expiry() }))
            .where((eb) => eb.or([eb("leases.expires_ms", "<=", clock()), eb("leases.holder", "=", holder)])),
        )
        .returning("token")
        .executeTakeFirst();
      return taken?.token;
    },
    async renew(token) {
      // Also one that has run out, as long as no other holder has taken it.
      const renewal = db.updateTable("leases").set({ expires_ms: expiry() });
      const { numUpdatedRows } = await renewal
        .where("name", "=", name)
        .where("holder", "=", holder)
        .where("token", "=", token)
        .executeTakeFirstOrThrow();
      return numUpdatedRows > 0n;
    },
    async giveBack(token) {
      const end = db.updateTable("leases").set({ expires_ms: 0, holder: "" });
      await end.where("name", "=", name).where("holder", "=", holder).where("token", "=", token).execute();
    },
    async isHeld(trx, token) {
      const present = (trx as unknown as Kysely<LeaseTables>)
        .selectFrom("leases")
        .select("token")
        .where("name", "=", name)
        .where("holder", "=", holder)
        .where("token", "=", token);
      // SQLite has one writer: nothing else changes during its transaction.
      return (await (isPostgres ? present.forShare() : present).execute()).length > 0;
    },
  };
}
