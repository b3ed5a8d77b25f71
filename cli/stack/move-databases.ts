import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { type Migration, openDatabase } from "../../lib/store/database.ts";
import { lockFolder } from "../../lib/store/folder-lock.ts";
import { openSqlite, type SqliteHandle } from "../../lib/store/sqlite-handle.ts";
import { UsageError } from "../errors/usage-error.ts";

/** A SQLite database whose tables belong into another one, and its whole schema. */
export interface MovedDatabase {
  path: string;
  migrations: readonly Migration[];
}

/** SQLite's user_version of a database whose origins may not be deleted yet. It is 0 in every other. */
const ORIGINS_LEFT = 1;

/**
 * Moves databases into one: it is written beside its place, in one transaction, and renamed when it is whole; only then are
 * its origins deleted. A process that is killed before the rename leaves them as they were, and the next start begins
 * again; one that is killed after it leaves a note in the new database, and the next start deletes what is left of them.
 * Does nothing where there are none.
 *
 * Throws, and changes nothing: a UsageError where an origin lies beside a database that was not made of it; FolderInUse where
 * a service of its own has the folder of one; IncompatibleDatabase where an earlier, incompatible version wrote one.
 */
export async function moveIntoOne(path: string, origins: readonly MovedDatabase[]): Promise<void> {
  const found = origins.filter((origin) => existsSync(origin.path));
  using locks = new DisposableStack();
  for (const origin of found) {
    const lock = lockFolder(dirname(origin.path), { program: "reeve up", setting: "REEVE_DATA_DIR" });
    locks.defer(() => lock.release());
  }
  if (!existsSync(path)) {
    if (found.length === 0) return;
    await writeDraft(draftOf(path), origins, found);
    renameSync(draftOf(path), path);
    syncFolder(path);
  }
  deleteOrigins(path, origins, found);
}

const draftOf = (path: string): string => `${path}.new`;

async function writeDraft(
  draft: string,
  origins: readonly MovedDatabase[],
  found: readonly MovedDatabase[],
): Promise<void> {
  // Of a start that was killed.
  deleteDatabase(draft);
  // What one holds is copied column by column, so that it must have the columns of today.
  for (const { path, migrations } of found) await bringUpToDate(path, migrations);
  await bringUpToDate(
    draft,
    origins.flatMap(({ migrations }) => migrations),
  );
  const db = openSqlite(draft);
  try {
    // Without a log beside it the draft is one file, and on disk when the transaction ends.
    db.exec("pragma journal_mode = delete; pragma synchronous = full");
    for (const [at, { path }] of found.entries()) db.run(`attach ? as ${schemaOf(at)}`, [path]);
    db.exec("begin");
    for (const at of found.keys()) copyTables(db, schemaOf(at));
    db.exec(`pragma user_version = ${ORIGINS_LEFT}`);
    db.run("commit", []);
  } finally {
    db.close();
  }
}

const schemaOf = (at: number): string => `origin${at}`;

async function bringUpToDate(path: string, migrations: readonly Migration[]): Promise<void> {
  const db = await openDatabase({ path, migrations });
  await db.destroy();
}

/** Copies all rows of an attached database's tables into the tables of the same names. */
function copyTables(db: SqliteHandle, schema: string): void {
  const listed = `select name from ${schema}.sqlite_schema
    where type = 'table' and name not like 'sqlite%' and name not like 'kysely%'`;
  for (const table of namesIn(db, listed)) {
    const columns = namesIn(db, "select name from pragma_table_info(?, 'main')", table).map(quoted).join(", ");
    // A migration may have put a first row there.
    db.run(`delete from main.${quoted(table)}`, []);
    db.run(`insert into main.${quoted(table)} (${columns}) select ${columns} from ${schema}.${quoted(table)}`, []);
  }
}

function namesIn(db: SqliteHandle, sql: string, ...parameters: string[]): string[] {
  return db.run(sql, parameters).rows.map(({ name }) => String(name));
}

const quoted = (name: string): string => `"${name}"`;

function deleteOrigins(path: string, origins: readonly MovedDatabase[], found: readonly MovedDatabase[]): void {
  const db = openSqlite(path);
  try {
    const [row] = db.run("pragma user_version", []).rows;
    if (row?.user_version !== ORIGINS_LEFT) {
      refuse(path, found);
      return;
    }
    for (const origin of origins) deleteDatabase(origin.path);
    for (const origin of origins) syncFolder(origin.path);
    db.exec("pragma user_version = 0");
  } finally {
    db.close();
  }
}

function refuse(path: string, [origin]: readonly MovedDatabase[]): void {
  if (origin === undefined) return;
  throw new UsageError(`${origin.path} lies beside ${path}, which was not made of it`, [
    `\`reeve up\` keeps what both services know in ${path}: move the other file to another folder, and start again`,
  ]);
}

/** The file itself last: without it nothing shows that there is a rest. */
function deleteDatabase(path: string): void {
  for (const file of [`${path}-journal`, `${path}-wal`, `${path}-shm`, path]) rmSync(file, { force: true });
}

/** Brings what was renamed or deleted in a file's folder to the disk. */
function syncFolder(path: string): void {
  if (!existsSync(dirname(path))) return;
  const folder = openSync(dirname(path), "r");
  fsyncSync(folder);
  closeSync(folder);
}
