import { mkdir, open } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { Kysely } from "kysely";
import type { Transact } from "./direct.ts";
import { type Migration, migrate } from "./migrate.ts";
import { openPostgres, type PostgresOptions } from "./postgres-open.ts";
import { sqliteDialect } from "./sqlite-dialect.ts";
import type { WalSync } from "./wal-sync.ts";

export { type DialectName, dialectOf } from "./dialect.ts";
export type { Migration } from "./migrate.ts";

/** A database with the tables of T. Close it with `destroy()`. */
export type Database<T> = Kysely<T>;

/** How to open a SQLite database. */
export interface SqliteOptions {
  /** A file, or ":memory:". A missing file is made, with its folders, for its owner's eyes only. */
  path: string;
  migrations: readonly Migration[];
}

/** Which database to open: a file of this process's own, or one on a server, which other processes may share. */
export type DatabaseOptions = SqliteOptions | PostgresOptions;

/** How batches are written to a SQLite database. */
export interface SqliteWriter<T> {
  transact: Transact<T>;
  /** Syncs the log. Undefined for a database in memory. */
  wal: WalSync | undefined;
}

const sqliteWriters = new WeakMap<object, SqliteWriter<unknown>>();

/** The writer of a SQLite database of `openDatabase`; undefined on PostgreSQL. */
export function sqliteWriterOf<T>(db: Database<T>): SqliteWriter<T> | undefined {
  return sqliteWriters.get(db) as SqliteWriter<T> | undefined;
}

/**
 * Opens a database and brings its schema up to date, all pending migrations in one transaction; several processes may
 * open one database at once. Rejects, and changes nothing, when the database holds a migration that this code does not
 * know: an older program must not write to it; with IncompatibleDatabase where an earlier, incompatible version wrote it. On PostgreSQL it waits a while for a server that is unavailable at first, and
 * rejects with DatabaseUnreachable when that does not come; a connection that is lost later is replaced by the next
 * query. Statements there end after 30 s, and a transaction that stands still for 10 s is rolled back.
 */
export async function openDatabase<T>(options: DatabaseOptions): Promise<Database<T>> {
  return "url" in options ? openPostgres<T>(options) : openSqlite<T>(options);
}

async function openSqlite<T>({ path, migrations }: SqliteOptions): Promise<Database<T>> {
  if (path !== ":memory:") await createPrivateFile(path);
  const dialect = sqliteDialect(path);
  const db = new Kysely<T>({ dialect });
  sqliteWriters.set(db, { transact: dialect.transactOn(db), wal: dialect.wal } as SqliteWriter<unknown>);
  try {
    const remedy = `Rename the folder ${dirname(resolve(path))}, or choose another one; nothing in it was changed.`;
    await migrate(db, { migrations, label: path, remedy });
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
