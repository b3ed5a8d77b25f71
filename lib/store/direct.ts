import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Kysely,
  type KyselyProps,
  type QueryResult,
  Transaction,
} from "kysely";
import type { SqliteHandle } from "./sqlite-handle.ts";
import type { WriteLock } from "./write-lock.ts";

/** Runs a compiled query at once. */
export type DirectRunner = (query: CompiledQuery) => QueryResult<unknown>;

/** A transaction whose prepared queries skip Kysely's executor, whose promises cost more than SQLite takes to run them. */
export class DirectTransaction<T> extends Transaction<T> {
  readonly runNow: DirectRunner;

  constructor(props: KyselyProps, runNow: DirectRunner) {
    super(props);
    this.runNow = runNow;
  }
}

/** Runs work in a transaction on the one writer of a SQLite database, without syncing it to disk. */
export type Transact<T> = <R>(work: (trx: Transaction<T>) => Promise<R>) => Promise<R>;

/** What transactions run on. */
interface Opened {
  writer: SqliteHandle;
  lock: WriteLock;
}

/**
 * Transactions without Kysely's own: acquiring a connection, beginning and committing through its driver takes a dozen
 * promises. Kysely's queries run in them as in any other. All have the same handle, which works inside them only.
 */
export function transactOn<T>(db: Kysely<T>, dialect: Dialect, opened: () => Opened | undefined): Transact<T> {
  let writer: SqliteHandle | undefined;
  const runNow: DirectRunner = (query) => {
    if (writer === undefined) throw new Error("the transaction is over");
    return runOn(openTransaction(writer), query);
  };
  const connection: DatabaseConnection = {
    executeQuery: async <R>(query: CompiledQuery) => runNow(query) as QueryResult<R>,
    streamQuery: () => {
      throw new Error("a job cannot read row by row");
    },
  };
  const executor = db.getExecutor().withConnectionProvider({ provideConnection: (consumer) => consumer(connection) });
  const props = { config: { dialect }, dialect, driver: dialect.createDriver(), executor };
  const trx = new DirectTransaction<T>(props, runNow);
  return async (work) => {
    const handles = opened();
    if (handles === undefined) throw new Error("the database is not open");
    await handles.lock.acquire();
    writer = handles.writer;
    try {
      writer.run("begin immediate", []);
      const result = await work(trx);
      openTransaction(writer).run("commit", []);
      return result;
    } catch (error: unknown) {
      if (handles.writer.inTransaction) handles.writer.run("rollback", []);
      throw error;
    } finally {
      writer = undefined;
      handles.lock.release();
    }
  };
}

/** A full disk makes SQLite end a transaction by itself; what came after would be committed statement by statement. */
export function openTransaction(writer: SqliteHandle): SqliteHandle {
  if (!writer.inTransaction) throw new Error("SQLite has rolled the transaction back");
  return writer;
}

/** Runs a compiled query on a connection. */
export function runOn<R>(handle: SqliteHandle, { sql, parameters }: CompiledQuery): QueryResult<R> {
  const { rows, changes, insertId } = handle.run(sql, parameters);
  return { rows: rows as R[], numAffectedRows: changes, insertId };
}
