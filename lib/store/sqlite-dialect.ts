import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type Kysely,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
} from "kysely";
import { openTransaction, runOn, type Transact, transactOn } from "./direct.ts";
import { PortableSqliteCompiler } from "./sqlite-compiler.ts";
import { openSqlite, type SqliteHandle } from "./sqlite-handle.ts";
import { createWalSync, type WalSync } from "./wal-sync.ts";
import { createWriteLock, type WriteLock } from "./write-lock.ts";

/** NORMAL, because the dialect itself syncs the log before it acknowledges a commit: see wal-sync.ts. */
const WRITER_PRAGMAS = `
  pragma busy_timeout = 5000;
  pragma journal_mode = wal;
  pragma synchronous = normal;
  pragma foreign_keys = on;
  pragma journal_size_limit = 67108864;
  pragma temp_store = memory;
`;

const READER_PRAGMAS = `
  pragma busy_timeout = 5000;
  pragma query_only = on;
`;

/**
 * A Kysely dialect on node:sqlite. One connection writes, under a lock, and every transaction begins IMMEDIATE, so that
 * none fails halfway for want of the lock. A second connection serves selects outside transactions: they see what is
 * committed and never wait. A database in memory has one connection only, so there selects wait as well.
 */
export function sqliteDialect(path: string): SqliteDialect {
  const wal = path === ":memory:" ? undefined : createWalSync(`${path}-wal`);
  let handles: Handles | undefined;
  const open = () => {
    handles = openHandles(path, wal);
    return handles;
  };
  const dialect: SqliteDialect = {
    wal,
    transactOn: (db) => transactOn(db, dialect, () => handles),
    createDriver: () => sqliteDriver(open),
    createQueryCompiler: () => new PortableSqliteCompiler(),
    createAdapter: () => new TransactionalAdapter(),
    createIntrospector: (db: Kysely<unknown>) => new SqliteIntrospector(db),
  };
  return dialect;
}

/** The dialect of one database. */
export interface SqliteDialect extends Dialect {
  /** Syncs its log. Undefined for a database in memory. */
  readonly wal: WalSync | undefined;
  /** Runs transactions on a database of this dialect. */
  transactOn<T>(db: Kysely<T>): Transact<T>;
}

/** SQLite can roll back schema changes, so all migrations of a start are one transaction. */
class TransactionalAdapter extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
    return true;
  }

  override get supportsTransactionalDdl(): boolean {
    return true;
  }
}

interface Handles {
  writer: SqliteHandle;
  reader: SqliteHandle | undefined;
  lock: WriteLock;
  wal: WalSync | undefined;
}

function sqliteDriver(open: () => Handles): Driver {
  let handles: Handles | undefined;
  return {
    async init() {
      handles = open();
    },
    async acquireConnection() {
      if (!handles) throw new Error("the database is not open");
      return new SqliteConnection(handles);
    },
    async beginTransaction(connection) {
      await connectionOf(connection).begin();
    },
    async commitTransaction(connection) {
      await connectionOf(connection).commit();
    },
    async rollbackTransaction(connection) {
      connectionOf(connection).rollback();
    },
    async releaseConnection() {},
    async destroy() {
      await handles?.wal?.close();
      handles?.reader?.close();
      handles?.writer.close();
      handles = undefined;
    },
  };
}

function openHandles(path: string, wal: WalSync | undefined): Handles {
  const writer = openSqlite(path);
  writer.exec(WRITER_PRAGMAS);
  if (wal === undefined) return { writer, reader: undefined, lock: createWriteLock(), wal };
  const reader = openSqlite(path);
  reader.exec(READER_PRAGMAS);
  return { writer, reader, lock: createWriteLock(), wal };
}

function connectionOf(connection: DatabaseConnection): SqliteConnection {
  if (connection instanceof SqliteConnection) return connection;
  throw new TypeError("not a connection of this dialect");
}

/** What Kysely sees as a connection: the writer while in a transaction, else whichever fits the query. */
class SqliteConnection implements DatabaseConnection {
  readonly #handles: Handles;
  #inTransaction = false;

  constructor(handles: Handles) {
    this.#handles = handles;
  }

  async begin(): Promise<void> {
    await this.#handles.lock.acquire();
    try {
      this.#handles.writer.run("begin immediate", []);
      this.#inTransaction = true;
    } catch (e: unknown) {
      this.#handles.lock.release();
      throw e;
    }
  }

  /**
   * Resolves when the transaction is on disk. The next writer need not wait for that: the log keeps the order. When the
   * commit itself fails the lock is kept: Kysely rolls back next.
   */
  async commit(): Promise<void> {
    openTransaction(this.#handles.writer).run("commit", []);
    this.#leave();
    await this.#handles.wal?.sync();
  }

  /** Nothing to do where the commit went through and only its sync failed. */
  rollback(): void {
    const { writer } = this.#handles;
    try {
      if (this.#inTransaction && writer.inTransaction) writer.run("rollback", []);
    } finally {
      if (this.#inTransaction) this.#leave();
    }
  }

  #leave(): void {
    this.#inTransaction = false;
    this.#handles.lock.release();
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    if (this.#inTransaction) return runOn(openTransaction(this.#handles.writer), query);
    const { reader, wal } = this.#handles;
    if (reader && query.query.kind === "SelectQueryNode") return runOn(reader, query);
    const result = await this.#runLocked<R>(query);
    await wal?.sync();
    return result;
  }

  /** A statement outside of a transaction is one by itself. */
  async #runLocked<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    const { writer, lock } = this.#handles;
    await lock.acquire();
    try {
      return runOn(writer, query);
    } finally {
      lock.release();
    }
  }

  async *streamQuery<R>(query: CompiledQuery): AsyncIterableIterator<QueryResult<R>> {
    const handle = this.#inTransaction ? this.#handles.writer : (this.#handles.reader ?? this.#handles.writer);
    for (const row of handle.iterate(query.sql, query.parameters)) yield { rows: [row as R] };
  }
}
