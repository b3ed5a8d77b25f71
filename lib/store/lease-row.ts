import { type Kysely, type RawBuilder, sql } from "kysely";
import { type Database, dialectOf, type Migration } from "./database.ts";

/** A table of leases; part of the database whose work they guard. */
export interface LeaseTable {
  name: string;
  /** Who holds it, or held it last; empty once it was given back. */
  holder: string;
  /** Rises with each new holding. */
  token: number;
  /** When it runs out, in milliseconds since 1970. */
  expires_ms: number;
}

/** A service's table of leases, under a name of its own: two services may share a database. */
export type LeaseTables<Name extends string> = Record<Name, LeaseTable>;

/** Makes a table of leases. */
export function leaseMigration(table: string): Migration {
  return {
    name: `${table}_0001`,
    async up(db) {
      await db.schema
        .createTable(table)
        .addColumn("name", "text", (column) => column.primaryKey())
        .addColumn("holder", "text", (column) => column.notNull())
        .addColumn("token", "bigint", (column) => column.notNull())
        .addColumn("expires_ms", "bigint", (column) => column.notNull())
        .execute();
    },
    before: { name: "lease_0001", up: (db) => db.schema.alterTable("leases").renameTo(table).execute() },
  };
}

/** One lease, as one holder sees it. */
export interface LeaseRow {
  /** Takes it where it is free, or where this holder has it without knowing; resolves with the new token. */
  take(): Promise<number | undefined>;
  /** False where the holding is over. */
  renew(token: number): Promise<boolean>;
  giveBack(token: number): Promise<void>;
  /** Whether the holding is the newest one; until the transaction ends that cannot change. */
  isHeld<T>(trx: Kysely<T>, token: number): Promise<boolean>;
}

/** What a row needs. */
export interface LeaseRowOptions<T> {
  db: Database<T>;
  /** The table of leases. */
  table: keyof T & string;
  name: string;
  holder: string;
  ttlMs: number;
  /** Milliseconds since 1970, for SQLite. */
  now: () => number;
}

/** Changes of one row of the table. */
export function createLeaseRow<T>(options: LeaseRowOptions<T>): LeaseRow {
  const { name, holder, ttlMs, now } = options;
  // The other tables and this one's real name do not matter here, and Kysely's types cannot say so.
  const db = options.db as unknown as Kysely<LeaseTables<"leases">>;
  const table = options.table as string as "leases";
  const column = <C extends keyof LeaseTable>(one: C) => `${table}.${one}` as const;
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
        .insertInto(table)
        .values({ name, holder, token: 1, expires_ms: expiry() })
        .onConflict((conflict) =>
          conflict
            .column("name")
            .doUpdateSet((eb) => ({ holder, token: eb(column("token"), "+", 1), expires_ms: expiry() }))
            .where((eb) => eb.or([eb(column("expires_ms"), "<=", clock()), eb(column("holder"), "=", holder)])),
        )
        .returning("token")
        .executeTakeFirst();
      return taken?.token;
    },
    async renew(token) {
      // Also one that has run out, as long as no other holder has taken it.
      const renewal = db.updateTable(table).set({ expires_ms: expiry() });
      const { numUpdatedRows } = await renewal
        .where("name", "=", name)
        .where("holder", "=", holder)
        .where("token", "=", token)
        .executeTakeFirstOrThrow();
      return numUpdatedRows > 0n;
    },
    async giveBack(token) {
      const end = db.updateTable(table).set({ expires_ms: 0, holder: "" });
      await end.where("name", "=", name).where("holder", "=", holder).where("token", "=", token).execute();
    },
    async isHeld(trx, token) {
      const present = (trx as unknown as typeof db)
        .selectFrom(table)
        .select("token")
        .where("name", "=", name)
        .where("holder", "=", holder)
        .where("token", "=", token);
      // SQLite has one writer: nothing else changes during its transaction.
      return (await (isPostgres ? present.forShare() : present).execute()).length > 0;
    },
  };
}
