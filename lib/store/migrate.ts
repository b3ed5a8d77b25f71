import { type Kysely, sql } from "kysely";
import { type Migration as KyselyMigration, Migrator } from "kysely/migration";
import { beginTransaction } from "./begin.ts";
import { dialectOf } from "./dialect.ts";
import { IncompatibleDatabase } from "./incompatible-database.ts";

/**
 * One step of a schema. Steps run once each, in the order of their names ("0001_calls", "0002_call_index"), and are
 * never changed after a release. Column types are text, integer, bigint (never past 2^53), double precision, bytea and
 * bigserial; booleans are integers 0 and 1. Foreign keys are enforced.
 */
export interface Migration {
  name: string;
  up: (db: Kysely<unknown>) => Promise<void>;
  /**
   * The name that the step had before, where what it leaves has changed since: a database that had it then is brought here
   * by this `up` in place of the other one.
   */
  before?: { name: string; up: (db: Kysely<unknown>) => Promise<void> };
}

/** What migrating needs. */
export interface MigrateOptions {
  migrations: readonly Migration[];
  /** The schema to make where it is missing. PostgreSQL only. */
  schema?: string | undefined;
  /** What the database is called in messages. */
  label: string;
  /** What to do where the database is of an earlier generation, as a sentence. */
  remedy: string;
}

/**
 * Rises when databases of before cannot be brought up to date any more. It stands before the name of each migration that a
 * database has had, so that every database names its generation.
 */
const GENERATION = 1;

const MIGRATION_TABLE = "kysely_migration";

/**
 * Brings a schema up to date, all pending migrations in one transaction. Several processes may do so at once: one does
 * the work, the others wait. Rejects, and changes nothing, when the database holds a migration that is
 * not in the list; with IncompatibleDatabase where it is of an earlier generation.
 */
export async function migrate<T>(db: Kysely<T>, options: MigrateOptions): Promise<void> {
  await beginTransaction(db).execute(async (trx) => {
    if (dialectOf(trx) === "postgres") await lockSchema(trx, options.schema);
    const applied = await appliedMigrations(trx, options.schema);
    refuseOthers(applied, options);
    await runPending(trx, applied, options);
  });
}

async function lockSchema<T>(trx: Kysely<T>, schema: string | undefined): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended('reeve migrations', 0))`.execute(trx);
  if (schema === undefined) return;
  // Asked first: CREATE SCHEMA wants a right on the database even where the schema exists.
  const { rows } = await sql`select 1 from pg_catalog.pg_namespace where nspname = ${schema}`.execute(trx);
  if (rows.length === 0) await sql`create schema ${sql.id(schema)}`.execute(trx);
}

function refuseOthers(applied: readonly string[], { migrations, label, remedy }: MigrateOptions): void {
  const names = migrations.flatMap(({ name, before }) => (before ? [name, before.name] : [name]));
  const known = new Set(names.map(numbered));
  const unknown = applied.filter((name) => !known.has(name));
  if (unknown.some((name) => generationOf(name) < GENERATION)) throw new IncompatibleDatabase(label, remedy);
  if (unknown.length === 0) return;
  const newer = unknown.map((name) => name.replace(`v${GENERATION}/`, ""));
  throw new Error(
    `the database ${label} is newer than this program: it holds the migrations ${newer.join(", ")}. ` +
      "Run the newer program, or restore a backup from before the upgrade.",
  );
}

/** A migration's name as the database keeps it. */
function numbered(name: string): string {
  return `v${GENERATION}/${name}`;
}

/** 0 for names of before there were generations. */
function generationOf(name: string): number {
  return Number(/^v(\d+)\//.exec(name)?.[1] ?? 0);
}

async function appliedMigrations<T>(trx: Kysely<T>, schema: string | undefined): Promise<string[]> {
  const tables = await trx.introspection.getTables({ withInternalKyselyTables: true });
  const exists = tables.some((table) => table.name === MIGRATION_TABLE && (!schema || table.schema === schema));
  if (!exists) return [];
  const rows = await withMigrations(trx).selectFrom(MIGRATION_TABLE).select("name").execute();
  return rows.map((row) => row.name);
}

function withMigrations<T>(trx: Kysely<T>): Kysely<{ [MIGRATION_TABLE]: { name: string } }> {
  return trx as unknown as Kysely<{ [MIGRATION_TABLE]: { name: string } }>;
}

async function runPending<T>(
  trx: Kysely<T>,
  applied: readonly string[],
  { migrations, schema }: MigrateOptions,
): Promise<void> {
  const byName: Record<string, KyselyMigration> = {};
  for (const { name, up, before } of migrations) {
    if (byName[numbered(name)]) throw new Error(`two migrations are named ${name}`);
    const wasBefore = before !== undefined && applied.includes(numbered(before.name));
    byName[numbered(name)] = { up: wasBefore ? before.up : up };
    if (!wasBefore) continue;
    await withMigrations(trx).deleteFrom(MIGRATION_TABLE).where("name", "=", numbered(before.name)).execute();
  }
  // Unordered, because the migrations of several modules share one database and each module adds its own later.
  const migrator = new Migrator({
    db: trx,
    provider: { getMigrations: async () => byName },
    migrationTableName: MIGRATION_TABLE,
    ...(schema !== undefined && { migrationTableSchema: schema }),
    allowUnorderedMigrations: true,
  });
  const { error } = await migrator.migrateToLatest();
  if (error !== undefined) throw error;
}
