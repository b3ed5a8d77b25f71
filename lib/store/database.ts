import { mkdir, open } from "node:fs/promises";
import { dirname } from "node:path";
import { Kysely } from "kysely";
import { type Migration as KyselyMigration, Migrator } from "kysely/migration";
import { registerWriter } from "./direct.ts";
import { sqliteDialect } from "./sqlite-dialect.ts";
import type { WalSync } from "./wal-sync.ts";

/** A database with the tables of T. Close it with `destroy()`. */
export type Database<T> = Kysely<T>;

/**
 * One step of a schema. Steps run once each, in the order of their names ("0001_calls", "0002_call_index"), and are
 * never changed after a release. Column types are text, integer, bigint (never past 2^53), double precision, bytea and
 * bigserial; booleans are integers 0 and 1. Foreign keys are enforced.
 */
export interface Migration {
  name: string;
  up: (db: Kysely<unknown>) => Promise<void>;
}

/** What openDatabase needs. */
export interface DatabaseOptions {
  /** A file, or ":memory:". A missing file is made, with its folders, for its owner's eyes only. */
  path: string;
  migrations: readonly Migration[];
}

/** Kysely has no room for what is not SQL. */
const walSyncs = new WeakMap<object, WalSync>();

/** Syncs the log of a database of `openDatabase`; undefined where each commit sees to that, or where there is no disk. */
export function walSyncOf<T>(db: Database<T>): WalSync | undefined {
  return walSyncs.get(db);
}

const MIGRATION_TABLE = "kysely_migration";

/**
 * Opens a database and brings its schema up to date, all pending migrations in one transaction. Rejects, and changes
 * nothing, when the database holds a migration that this code does not know: an older program must not write to it.
 */
export async function openDatabase<T>(options: DatabaseOptions): Promise<Database<T>> {
  if (options.path !== ":memory:") await createPrivateFile(options.path);
  const dialect = sqliteDialect(options.path);
  const db = new Kysely<T>({ dialect });
  if (dialect.wal !== undefined) walSyncs.set(db, dialect.wal);
  registerWriter(db, dialect.runOnWriter);
  try {
    await refuseNewer(db, options);
    await migrate(db, options.migrations);
    return db;
  } catch (e: unknown) {
    await db.destroy();
    throw e;
  }
}

/** SQLite gives its log files the mode of the database file. */
async function createPrivateFile(path: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const file = await open(path, "a", 0o600);
  await file.close();
}

async function refuseNewer<T>(db: Database<T>, { path, migrations }: DatabaseOptions): Promise<void> {
  const known = new Set(migrations.map((migration) => migration.name));
  const unknown = (await appliedMigrations(db)).filter((name) => !known.has(name));
  if (unknown.length === 0) return;
  throw new Error(
    `the database ${path} is newer than this program: it holds the migrations ${unknown.join(", ")}. ` +
      "Run the newer program, or restore a backup from before the upgrade.",
  );
}

async function appliedMigrations<T>(db: Database<T>): Promise<string[]> {
  const tables = await db.introspection.getTables({ withInternalKyselyTables: true });
  if (!tables.some((table) => table.name === MIGRATION_TABLE)) return [];
  const withTable = db as unknown as Kysely<{ [MIGRATION_TABLE]: { name: string } }>;
  const rows = await withTable.selectFrom(MIGRATION_TABLE).select("name").execute();
  return rows.map((row) => row.name);
}

async function migrate<T>(db: Database<T>, migrations: readonly Migration[]): Promise<void> {
  const byName: Record<string, KyselyMigration> = {};
  for (const { name, up } of migrations) {
    if (byName[name]) throw new Error(`two migrations are named ${name}`);
    byName[name] = { up };
  }
  // Unordered, because the migrations of several modules share one database and each module adds its own later.
  const migrator = new Migrator({
    db,
    provider: { getMigrations: async () => byName },
    migrationTableName: MIGRATION_TABLE,
    allowUnorderedMigrations: true,
  });
  const { error } = await migrator.migrateToLatest();
  if (error !== undefined) throw error;
}
