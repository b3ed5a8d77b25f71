import type { CompiledQuery, QueryResult } from "kysely";

/** Runs a compiled query at once. */
export type DirectRunner = (query: CompiledQuery) => QueryResult<unknown>;

/** By database: runs on its one writer. Only for whoever holds the writer. */
const writers = new WeakMap<object, DirectRunner>();

/** By transaction: the same, for as long as the transaction lasts. */
const runners = new WeakMap<object, DirectRunner>();

/** Says how queries of a database's transactions can be run without Kysely's executor. */
export function registerWriter(db: object, run: DirectRunner): void {
  writers.set(db, run);
}

/**
 * Lets prepared queries of a transaction skip Kysely's executor, whose half a dozen promises for each query cost more
 * than SQLite takes to run it. Nothing happens for a database that has no such way.
 */
export function runDirectly(db: object, trx: object): void {
  const run = writers.get(db);
  if (run !== undefined) runners.set(trx, run);
}

/** The direct way of a transaction; undefined for anything else. */
export function directRunnerOf(on: object): DirectRunner | undefined {
  return runners.get(on);
}
