import { type Kysely, PostgresAdapter } from "kysely";

/** The kinds of databases there are. */
export type DialectName = "sqlite" | "postgres";

/** Which kind of database a database or a transaction of `openDatabase` is on. */
export function dialectOf<T>(db: Kysely<T>): DialectName {
  return db.getExecutor().adapter instanceof PostgresAdapter ? "postgres" : "sqlite";
}
