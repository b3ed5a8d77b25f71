import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { type Generated, sql } from "kysely";
import { type EventEnvelope, EventEnvelopeSchema } from "../../gen/ts/reeve/event/v1/envelope_pb.ts";
import { type Database, dialectOf, type Migration } from "../store/database.ts";
import { prepared, type QueryRunner } from "../store/prepared.ts";
import { forRows } from "../store/rows.ts";
import { checkEnvelope } from "./envelope.ts";

/** A publisher's table of events that are stored and not yet published, under a name of its own: two may share a database. */
export type OutboxTables<Name extends string> = Record<Name, { seq: Generated<number>; envelope: Uint8Array }>;

/** Makes an outbox's table. */
export function outboxMigration(table: string): Migration {
  return {
    name: `${table}_0001`,
    async up(db) {
      await db.schema
        .createTable(table)
        .addColumn("seq", "bigserial", (column) => column.primaryKey())
        .addColumn("envelope", "bytea", (column) => column.notNull())
        .execute();
    },
    before: { name: "outbox_0001", up: (db) => db.schema.alterTable("outbox").renameTo(table).execute() },
  };
}

/** An event that waits to be published. */
export interface OutboxEntry {
  seq: number;
  envelope: EventEnvelope;
}

/**
 * The events that a database's own transactions have left for publication. Those of one transaction keep their order,
 * and so do those of transactions that ran one after another: on SQLite all of them, on PostgreSQL all of a group commit
 * and of all group commits with one `lock`. Of two that overlap on PostgreSQL, the one that commits later may have the
 * lower number, and is published once it is committed; nothing is left out for that.
 */
export interface Outbox {
  /**
   * Stores events in the caller's transaction: they are published if, and only if, it commits. Throws for an envelope
   * that no bus would carry, so that one bad event cannot hold up those behind it.
   */
  enqueue(trx: QueryRunner, envelopes: readonly EventEnvelope[]): Promise<void>;
  /** The oldest entries, at most so many. */
  oldest(limit: number): Promise<OutboxEntry[]>;
  /** Forgets entries that were published. */
  remove(trx: QueryRunner, entries: readonly OutboxEntry[]): Promise<void>;
  /** How many entries wait. */
  count(): Promise<number>;
}

/** The outbox of a database that holds the table of an `outboxMigration`. */
export function createOutbox<T>(database: Database<T>, name: keyof T & string): Outbox {
  // The other tables and this one's real name do not matter here, and Kysely's types cannot say so.
  const db = database as unknown as Database<OutboxTables<"outbox">>;
  const table = name as string as "outbox";
  const insert = prepared((p: { envelope: Uint8Array }) => db.insertInto(table).values({ envelope: p.envelope }));
  const insertAll = forRows<{ envelope: Uint8Array }, never>(
    db,
    { envelope: "bytea" },
    (given) => sql`insert into ${sql.table(table)} (envelope) select envelope from ${given} order by ord`,
  );
  const select = prepared((p: { limit: number }) => db.selectFrom(table).selectAll().orderBy("seq").limit(p.limit));
  // As one parameter, so that the statement is the same for every number of entries.
  const drop = prepared((p: { seqs: string }) => {
    const listed =
      dialectOf(db) === "postgres"
        ? sql<number>`(select value::bigint from json_array_elements_text(${p.seqs}::json))`
        : sql<number>`(select value from json_each(${p.seqs}))`;
    return db.deleteFrom(table).where("seq", "in", listed);
  });
  const size = prepared(() => db.selectFrom(table).select((eb) => eb.fn.countAll<number>().as("waiting")));
  return {
    async enqueue(trx, envelopes) {
      envelopes.forEach(checkEnvelope);
      const rows = envelopes.map((envelope) => ({ envelope: toBinary(EventEnvelopeSchema, envelope) }));
      if (dialectOf(db) === "postgres" && rows.length > 1) await insertAll(trx, rows);
      else for (const row of rows) await insert.run(trx, row);
    },
    async oldest(limit) {
      const rows = await select.all(db, { limit });
      return rows.map(({ seq, envelope }) => ({ seq, envelope: fromBinary(EventEnvelopeSchema, envelope) }));
    },
    async remove(trx, entries) {
      // By their numbers and not as a range: entries committed meanwhile may lie between the first and the last.
      await drop.run(trx, { seqs: JSON.stringify(entries.map(({ seq }) => seq)) });
    },
    count: async () => (await size.first(db, {}))?.waiting ?? 0,
  };
}
