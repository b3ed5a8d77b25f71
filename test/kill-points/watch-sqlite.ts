import fs, { fstatSync, readlinkSync, statSync, truncateSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { basename } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { killPoint, writeOf } from "./kill-at.ts";

/** Statements that change nothing on disk by themselves. */
const HARMLESS = /^\s*(?:select|pragma|explain|begin|rollback|savepoint|release)\b/i;

/** SQLite moves a log of so many bytes into the database by itself, and then none of it may be missing. */
const CHECKPOINT_BYTES = 1000 * 4096;

/** What the open transaction of each database has written, in order. */
const writesOf = new WeakMap<DatabaseSync, Set<string | undefined>>();

/** How much of each write-ahead log is on disk for certain, by path. */
const synced = new Map<string, number>();

/**
 * Puts a point before and after each commit of SQLite, and around each sync of a file. After a commit only the process dies;
 * at the others the power fails, too.
 */
export function watchSqlite(): void {
  watchCommits();
  watchSyncs();
}

function watchCommits(): void {
  const { prepare } = DatabaseSync.prototype;
  DatabaseSync.prototype.prepare = function (this: DatabaseSync, sql: string) {
    const statement = prepare.call(this, sql);
    const path = this.location() ?? "memory";
    noteLog(`${path}-wal`);
    if (HARMLESS.test(sql)) return statement;
    const around = <R>(work: () => R): R => {
      const writes = writesOf.get(this) ?? new Set();
      writesOf.set(this, writes.add(writeOf(sql)));
      // Inside a transaction only COMMIT writes.
      if (this.isTransaction && !/^\s*commit\b/i.test(sql)) return work();
      writesOf.delete(this);
      const places = [...writes].flatMap((write) => write ?? []).map((write) => `${basename(path)}: ${write}`);
      killPoint(
        places.map((place) => `${place}, before the commit`),
        losePower,
      );
      const result = work();
      killPoint(places.map((place) => `${place}, after the commit`));
      return result;
    };
    for (const name of ["run", "all"] as const) {
      const run = statement[name] as (...values: unknown[]) => unknown;
      const value = (...values: unknown[]) => around(() => run.apply(statement, values));
      Object.defineProperty(statement, name, { value });
    }
    return statement;
  };
}

function watchSyncs(): void {
  const { fdatasync, fdatasyncSync, fsyncSync } = fs;
  const before = (file: number): { name: string; done: () => void } => {
    const path = readlinkSync(`/proc/self/fd/${file}`);
    const { size } = fstatSync(file);
    const name = basename(path);
    killPoint([`${name}: before a sync`], losePower);
    const done = () => {
      synced.set(path, size);
      killPoint([`${name}: after a sync`], losePower);
    };
    return { name, done };
  };
  const now = (sync: (file: number) => void) => (file: number) => {
    const { done } = before(file);
    sync(file);
    done();
  };
  fs.fdatasyncSync = now(fdatasyncSync);
  fs.fsyncSync = now(fsyncSync);
  fs.fdatasync = ((file: number, callback: (error: NodeJS.ErrnoException | null) => void) => {
    const { done } = before(file);
    fdatasync(file, (error) => {
      if (error === null) done();
      callback(error);
    });
  }) as typeof fdatasync;
  syncBuiltinESMExports();
}

/** What a log holds when it is opened counts as synced. */
function noteLog(path: string): void {
  if (!synced.has(path)) synced.set(path, sizeOf(path));
}

/** Takes from every log what was never synced, as a cut of the power may. */
function losePower(): void {
  for (const [path, size] of synced) {
    const now = path.endsWith("-wal") ? sizeOf(path) : 0;
    if (now > size && now < CHECKPOINT_BYTES) truncateSync(path, size);
  }
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
