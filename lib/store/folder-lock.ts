import { closeSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { type FolderHolder, FolderInUse } from "./folder-in-use.ts";
import { openSqlite, type SqliteHandle } from "./sqlite-handle.ts";

/** Who takes a folder. */
export interface FolderOwner {
  /** What runs, such as "reeve up". */
  readonly program: string;
  /** The setting that names another folder, such as "REEVE_DATA_DIR"; for the message to a second process. */
  readonly setting: string;
}

/** A folder that belongs to this process. */
export interface FolderLock {
  /** Writes down where the holder listens, for the message to a second process. */
  listensAt(url: string): void;
  /** Gives the folder up. Safe to repeat. */
  release(): void;
}

const LOCK_FILE = "process.lock";
const HOLDER_FILE = "process.json";

/** SQLite's primary result code for a database that another connection has locked. */
const SQLITE_BUSY = 5;

/** Keeps the connections open, whatever becomes of those who took the locks: a collected one would be closed. */
const held = new Set<SqliteHandle>();

/**
 * Makes a folder, mode 0700, where it is missing, and takes it for this process until it is released or the process ends,
 * however it ends. Throws FolderInUse at once where it is taken, by this process or another.
 *
 * The lock is the kernel's, taken by SQLite on an empty database: there is no file whose age or pid would have to be
 * evaluated, so it is right after a crash, a restart of the machine, and between containers that share a volume. Programs
 * that the process starts do not inherit it. A network file system must carry POSIX locks, as SQLite itself needs.
 *
 * The lock's file must not be opened by anything else in the process that holds it: POSIX drops all of a process's locks
 * on a file when the process closes any descriptor of it.
 */
export function lockFolder(folder: string, owner: FolderOwner): FolderLock {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, LOCK_FILE);
  createOnce(path);
  const connection = openSqlite(path);
  try {
    connection.exec("pragma journal_mode = memory; begin exclusive");
  } catch (error: unknown) {
    connection.close();
    if (isBusy(error)) throw new FolderInUse(folder, owner.setting, readHolder(folder));
    throw error;
  }
  held.add(connection);
  const holder = { program: owner.program, pid: process.pid, host: hostname(), since: new Date().toISOString() };
  writeHolder(folder, holder);
  return {
    listensAt: (url) => writeHolder(folder, { ...holder, url }),
    release() {
      if (!held.delete(connection)) return;
      // First, while it is certain that it is ours.
      rmSync(join(folder, HOLDER_FILE), { force: true });
      connection.close();
    },
  };
}

/** Never opens an existing file, which would drop the lock of this process, where it has one. */
function createOnce(path: string): void {
  try {
    closeSync(openSync(path, "wx", 0o600));
  } catch (error: unknown) {
    if (codeOf(error) !== "EEXIST") throw error;
  }
}

function writeHolder(folder: string, holder: FolderHolder): void {
  const path = join(folder, HOLDER_FILE);
  const draft = `${path}.tmp`;
  rmSync(draft, { force: true });
  writeFileSync(draft, `${JSON.stringify(holder)}\n`, { flag: "wx", mode: 0o600 });
  renameSync(draft, path);
}

/** Undefined for what is missing or damaged: it is only for a message. */
function readHolder(folder: string): FolderHolder | undefined {
  try {
    const value: unknown = JSON.parse(readFileSync(join(folder, HOLDER_FILE), "utf8"));
    return isHolder(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isHolder(value: unknown): value is FolderHolder {
  if (typeof value !== "object" || value === null) return false;
  const { program, pid, host, since, url = "" } = value as Record<string, unknown>;
  return typeof pid === "number" && [program, host, since, url].every((text) => typeof text === "string");
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && "errcode" in error && (Number(error.errcode) & 0xff) === SQLITE_BUSY;
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
