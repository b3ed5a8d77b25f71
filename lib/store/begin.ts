import type { Kysely, TransactionBuilder } from "kysely";
import { dialectOf } from "./dialect.ts";

/**
 * A transaction whose every statement sees what others have committed by then, whatever a PostgreSQL server, database or
 * role has as its default: under repeatable read a transaction that waits for a lock would go on with what there was before
 * it waited. SQLite has one writer.
 */
export function beginTransaction<T>(db: Kysely<T>): TransactionBuilder<T> {
  const transaction = db.transaction();
  return dialectOf(db) === "postgres" ? transaction.setIsolationLevel("read committed") : transaction;
}
