import type { Compilable, CompiledQuery, QueryResult } from "kysely";
import { DirectTransaction } from "./direct.ts";

/** What a prepared query runs on: a database or a transaction, whatever its tables. */
export interface QueryRunner {
  executeQuery<R>(query: CompiledQuery<R>): Promise<QueryResult<R>>;
}

/** A query that was built and compiled once. */
export interface Prepared<P, R> {
  /** All rows. */
  all(on: QueryRunner, parameters: P): Promise<R[]>;
  /** The first row, if there is one. */
  first(on: QueryRunner, parameters: P): Promise<R | undefined>;
  /** Runs a statement that returns no rows; resolves with the number of rows it changed. */
  run(on: QueryRunner, parameters: P): Promise<number>;
}

/**
 * Compiles a Kysely query once, to be run with other parameters: building and compiling costs more than SQLite takes to
 * run it. The fields of `p` are markers that may only be handed to Kysely as values, never read, computed with, spread
 * or put into a list. A parameter that is undefined is bound as NULL.
 *
 * ```ts
 * const insertCall = prepared((p: { id: string; at: number }) => db.insertInto("calls").values({ id: p.id, at: p.at }));
 * await writes.write((trx) => insertCall.run(trx, { id, at }));
 * ```
 */
export function prepared<P extends object, R>(build: (p: P) => Compilable<R>): Prepared<P, R> {
  const template = build(markers<P>()).compile();
  const bind = binder<P>(template.parameters);
  const run = (on: QueryRunner, parameters: P): QueryResult<R> | Promise<QueryResult<R>> => {
    const query = { ...template, parameters: bind(parameters) };
    return on instanceof DirectTransaction ? (on.runNow(query) as QueryResult<R>) : on.executeQuery<R>(query);
  };
  return {
    all: async (on, parameters) => (await run(on, parameters)).rows,
    first: async (on, parameters) => (await run(on, parameters)).rows[0],
    run: async (on, parameters) => Number((await run(on, parameters)).numAffectedRows ?? 0),
  };
}

/** Stands in a compiled query where a parameter goes. */
class Marker {
  readonly key: string;

  constructor(key: string) {
    this.key = key;
  }

  /** Reached when a marker is computed with or put into a string. */
  [Symbol.toPrimitive](): never {
    throw new TypeError(`parameter ${this.key} of a prepared query has no value while the query is built`);
  }
}

function markers<P extends object>(): P {
  const proxy = new Proxy(
    {},
    {
      get: (_, key) => new Marker(String(key)),
      ownKeys: () => {
        throw new TypeError("the parameters of a prepared query cannot be listed or spread");
      },
    },
  );
  return proxy as P;
}

function binder<P extends object>(template: readonly unknown[]): (parameters: P) => unknown[] {
  const keys = template.map((value) => (value instanceof Marker ? (value.key as keyof P) : undefined));
  return (parameters) => keys.map((key, i) => (key === undefined ? template[i] : (parameters[key] ?? null)));
}
