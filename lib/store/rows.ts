import { type QueryExecutorProvider, type RawBuilder, sql, type Transaction } from "kysely";
import { prepared, type QueryRunner } from "./prepared.ts";

/** One kind of change that a batch makes to many rows at once where each statement is a round trip. */
export interface RowKind<T, Row, R> {
  /**
   * What a row is about. Rows about different things may change places within a batch, of whatever kinds they are; those
   * about the same thing never do, and are never in one `many`.
   */
  key(row: Row): string;
  /** About how large it is, in bytes. */
  bytes(row: Row): number;
  /** Writes one, as a job of its own would. */
  one(trx: Transaction<T>, row: Row): Promise<R>;
  /** The same for several, with as few statements as that takes, on PostgreSQL: each row's result, in their order. */
  many(trx: Transaction<T>, rows: readonly Row[]): Promise<readonly R[]>;
}

/** A row that waits to be written, of whatever kind. */
export interface WaitingRow<T> {
  kind: RowKind<T, unknown, unknown>;
  row: unknown;
}

/** Bytes in one statement at most, unless one row is larger: the driver makes a text of twice that. */
const MAX_BYTES = 4 * 1024 * 1024;

interface Step<J> {
  jobs: J[];
  bytes: number;
}

/**
 * Puts rows of a kind together, as far as nothing about the same thing lies between them. What is no row keeps its place
 * among all others.
 */
export function stepsOf<T, J extends { waiting?: WaitingRow<T> }>(jobs: readonly J[]): J[][] {
  const steps: Step<J>[] = [];
  const growing = new Map<RowKind<T, unknown, unknown>, number>();
  /** By key: the last step with a row about it. */
  const lastAbout = new Map<string, number>();
  for (const job of jobs) {
    if (job.waiting === undefined) {
      steps.push({ jobs: [job], bytes: 0 });
      growing.clear();
      continue;
    }
    const { kind, row } = job.waiting;
    const key = kind.key(row);
    const bytes = kind.bytes(row);
    let at = growing.get(kind) ?? steps.length;
    const step = steps[at];
    if (step === undefined || (lastAbout.get(key) ?? -1) >= at || step.bytes + bytes > MAX_BYTES) {
      at = steps.push({ jobs: [job], bytes }) - 1;
      growing.set(kind, at);
    } else {
      step.jobs.push(job);
      step.bytes += bytes;
    }
    lastAbout.set(key, at);
  }
  return steps.map((step) => step.jobs);
}

/** The types of PostgreSQL that columns of rows have. */
export type ColumnType = "text" | "bytea" | "bigint" | "integer";

/**
 * A statement of PostgreSQL about many rows, compiled once: `given` in its FROM is a table of the rows, with their columns
 * and their place, `ord`.
 */
export function forRows<Row extends object, R>(
  db: QueryExecutorProvider,
  columns: Readonly<Record<keyof Row & string, ColumnType>>,
  build: (given: RawBuilder<unknown>) => RawBuilder<R>,
): (trx: QueryRunner, rows: readonly Row[]) => Promise<R[]> {
  const names = Object.keys(columns) as (keyof Row & string)[];
  const statement = prepared((p: Record<string, unknown[]>) => {
    const arrays = names.map((name) => sql`${p[name]}::${sql.raw(columns[name])}[]`);
    const given = sql`unnest(${sql.join(arrays)}) with ordinality as given (${sql.join([...names, "ord"].map((name) => sql.ref(name)))})`;
    return { compile: () => build(given).compile(db) };
  });
  return (trx, rows) =>
    statement.all(trx, Object.fromEntries(names.map((name) => [name, rows.map((row) => row[name] ?? null)])));
}
