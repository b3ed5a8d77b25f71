import { setTimeout as sleep } from "node:timers/promises";
import { Kysely } from "kysely";
import { type Migration, migrate } from "./migrate.ts";
import { postgresDialect } from "./postgres-dialect.ts";
import { DatabaseUnreachable } from "./postgres-errors.ts";
import { createPostgresPool } from "./postgres-pool.ts";
import { parsePostgresUrl } from "./postgres-url.ts";

/** How to open a PostgreSQL database. */
export interface PostgresOptions {
  /**
   * "postgres://user:password@host:5432/database". `?schema=name` puts all tables into that schema, which is made when
   * missing; other parameters, such as sslmode and sslrootcert, are the driver's.
   */
  url: string;
  migrations: readonly Migration[];
  /** Connections at most. Default 10. */
  poolSize?: number;
  /** How long to wait at the start for a server that has not started yet, in milliseconds. Default 20000. */
  startWithinMs?: number;
}

const RETRY_MS = 250;

/** Opens a PostgreSQL database and brings its schema up to date: see `openDatabase`. */
export async function openPostgres<T>(options: PostgresOptions): Promise<Kysely<T>> {
  const { url, migrations, poolSize = 10, startWithinMs = 20_000 } = options;
  const address = parsePostgresUrl(url);
  const { schema, label } = address;
  const migrateOnce = async () => {
    // A connection of its own: an index of a large table may take longer than any query should.
    const pool = createPostgresPool({ address, size: 1, patient: true });
    const db = new Kysely<T>({ dialect: postgresDialect(pool) });
    try {
      await migrate(db, { migrations, schema, label, remedy: REMEDY });
    } finally {
      await db.destroy();
    }
  };
  await retryUnreachable(migrateOnce, startWithinMs);
  return new Kysely<T>({ dialect: postgresDialect(createPostgresPool({ address, size: poolSize })) });
}

/** Tries what is safe to repeat until it works, fails for another reason, or has taken too long. */
async function retryUnreachable(work: () => Promise<void>, withinMs: number): Promise<void> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    try {
      return await work();
    } catch (e: unknown) {
      if (!(e instanceof DatabaseUnreachable)) throw e;
      if (performance.now() + RETRY_MS < deadline) await sleep(RETRY_MS);
      else throw new DatabaseUnreachable(`${e.message}; gave up after ${withinMs} ms`, { cause: e });
    }
  }
}

const REMEDY = "Use another database or schema, or drop this one; nothing in it was changed.";
