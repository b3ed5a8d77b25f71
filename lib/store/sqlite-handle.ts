import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";

/** One row as the driver returns it. */
export type Row = Record<string, unknown>;

/** How many compiled statements one connection keeps. */
const STATEMENT_CACHE_SIZE = 256;

/** One connection to a SQLite file; every call blocks until SQLite is done. */
export interface SqliteHandle {
  /** True between BEGIN and COMMIT or ROLLBACK. SQLite ends a transaction by itself when the disk is full. */
  readonly inTransaction: boolean;
  /** Runs SQL that takes no parameters. */
  exec(sql: string): void;
  /** Runs one statement from the cache. */
  run(sql: string, parameters: readonly unknown[]): { rows: Row[]; changes: bigint; insertId: bigint };
  /** Reads row by row, on a statement of its own: other queries may run between two rows. */
  iterate(sql: string, parameters: readonly unknown[]): IterableIterator<Row>;
  close(): void;
}

/** Opens a connection. This file is the only one that knows node:sqlite: Node 26.11 renames its classes. */
export function openSqlite(path: string): SqliteHandle {
  const db = new DatabaseSync(path);
  const statement = statementCache(db);
  return {
    get inTransaction() {
      return db.isTransaction;
    },
    exec: (sql) => db.exec(sql),
    run(sql, parameters) {
      const { prepared, returnsRows } = statement(sql);
      if (returnsRows) return { rows: prepared.all(...inputs(parameters)), changes: 0n, insertId: 0n };
      const result = prepared.run(...inputs(parameters));
      return { rows: [], changes: BigInt(result.changes), insertId: BigInt(result.lastInsertRowid) };
    },
    iterate: (sql, parameters) => db.prepare(sql).iterate(...inputs(parameters)),
    close: () => db.close(),
  };
}

interface CachedStatement {
  prepared: StatementSync;
  returnsRows: boolean;
}

/** Least recently used goes first: a Map keeps its keys in the order of insertion. */
function statementCache(db: DatabaseSync): (sql: string) => CachedStatement {
  const cache = new Map<string, CachedStatement>();
  return (sql) => {
    const known = cache.get(sql);
    if (known) cache.delete(sql);
    const entry = known ?? compile(db, sql);
    cache.set(sql, entry);
    if (cache.size > STATEMENT_CACHE_SIZE) cache.delete(cache.keys().next().value ?? sql);
    return entry;
  };
}

function compile(db: DatabaseSync, sql: string): CachedStatement {
  const prepared = db.prepare(sql);
  return { prepared, returnsRows: prepared.columns().length > 0 };
}

// SQLite itself refuses what it cannot bind, with the parameter's number.
function inputs(parameters: readonly unknown[]): SQLInputValue[] {
  return parameters as SQLInputValue[];
}
