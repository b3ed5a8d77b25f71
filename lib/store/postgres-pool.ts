import type { PostgresPool, PostgresPoolClient, PostgresQueryResult } from "kysely";
import { type CustomTypesConfig, Pool, type PoolClient, type PoolConfig, types } from "pg";
import { CommitUnknown, DatabaseUnreachable, isConnectionLoss } from "./postgres-errors.ts";
import type { PostgresAddress } from "./postgres-url.ts";

/** Connections to one PostgreSQL database. */
export interface PostgresPoolOptions {
  address: PostgresAddress;
  /** Connections at most. */
  size: number;
  /** Whether statements may take as long as they like: migrations may. */
  patient?: boolean;
}

/** How long to wait for a connection, new or given back, in milliseconds. */
const CONNECT_TIMEOUT_MS = 10_000;

/** Ends a statement, or its wait for a lock, on the server. */
const STATEMENT_TIMEOUT_MS = 30_000;

/** Ends a query whose answer does not come: later than the server would end it, so only where the network is gone. */
const ANSWER_TIMEOUT_MS = 35_000;

/** Ends the transaction of a process that has stopped in the middle of it: others wait for its locks. */
const IDLE_IN_TRANSACTION_MS = 10_000;

const KEEP_ALIVE_MS = 10_000;

/** The server notices by itself that the machine of a connection is gone, within half a minute. */
const SERVER_KEEP_ALIVE = "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=4";

/**
 * A pool for Kysely's dialect on pg, whose errors say what is known: DatabaseUnreachable where a connection was lost,
 * CommitUnknown where that happened during COMMIT. A connection is replaced after either. This file and
 * postgres-errors.ts are the only ones that know pg.
 */
export function createPostgresPool(options: PostgresPoolOptions): PostgresPool {
  const { label } = options.address;
  const pool = new Pool(poolConfig(options));
  // Without listeners these errors would end the process. The next use of the connection, or
  // the query that waits for an answer on it, fails.
  pool.on("error", () => {});
  pool.on("connect", (client) => client.on("error", () => {}));
  return {
    options: pool.options,
    async connect() {
      try {
        return guardClient(await pool.connect(), label);
      } catch (cause: unknown) {
        throw isConnectionLoss(cause) ? unreachable(label, cause) : cause;
      }
    },
    end: () => pool.end(),
  };
}

function poolConfig({ address, size, patient = false }: PostgresPoolOptions): PoolConfig {
  return {
    connectionString: address.connectionString,
    max: size,
    options: `${address.options} ${SERVER_KEEP_ALIVE}`.trim(),
    fallback_application_name: "reeve",
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    types: { getTypeParser: typeParser } as CustomTypesConfig,
    ...(!patient && {
      statement_timeout: STATEMENT_TIMEOUT_MS,
      query_timeout: ANSWER_TIMEOUT_MS,
      idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
    }),
  };
}

/** After a loss every later query fails at once, and with the first error: Kysely's ROLLBACK must not hide it. */
function guardClient(client: PoolClient, label: string): PostgresPoolClient {
  let lost: Error | undefined;
  const query = async <R>(sql: string, parameters: readonly unknown[]): Promise<PostgresQueryResult<R>> => {
    if (lost !== undefined) throw lost;
    try {
      return (await client.query(sql, [...parameters])) as unknown as PostgresQueryResult<R>;
    } catch (cause: unknown) {
      if (!isConnectionLoss(cause)) throw cause;
      lost = sql === "commit" ? commitUnknown(label, cause) : unreachable(label, cause);
      throw lost;
    }
  };
  return {
    query: query as PostgresPoolClient["query"],
    release: (destroy) => client.release(destroy === true || lost !== undefined),
  };
}

function unreachable(label: string, cause: unknown): Error {
  return new DatabaseUnreachable(`the database ${label} cannot be reached: ${words(cause)}`, { cause });
}

function commitUnknown(label: string, cause: unknown): Error {
  return new CommitUnknown(
    `the database ${label} was lost during COMMIT, so that it is not known whether it happened: ${words(cause)}`,
    { cause },
  );
}

/** Node tries every address of a name and puts the errors into one without a message. */
function words(cause: unknown): string {
  if (cause instanceof AggregateError && cause.errors.length > 0) return cause.errors.map(words).join("; ");
  return cause instanceof Error ? cause.message : String(cause);
}

/** What SQLite returns as well: bigints, and the sums of them, as numbers; bytes as Uint8Array. */
function typeParser(oid: number, format?: "text" | "binary"): unknown {
  if (format === "binary") return types.getTypeParser(oid, "binary");
  if (oid === types.builtins.INT8 || oid === types.builtins.NUMERIC) return exactNumber;
  const parse = types.getTypeParser(oid, "text");
  return oid === types.builtins.BYTEA ? (value: string) => plainBytes(parse(value) as Buffer) : parse;
}

function exactNumber(value: string): number {
  const number = Number(value);
  if (Number.isInteger(number) && !Number.isSafeInteger(number)) throw new RangeError(`${value} is past 2^53`);
  return number;
}

function plainBytes({ buffer, byteOffset, length }: Buffer): Uint8Array {
  return new Uint8Array(buffer, byteOffset, length);
}
