import { sql } from "kysely";
import { type Database, dialectOf } from "./database.ts";

/**
 * Rewrites a SQLite file and empties its log, so that no page holds what was deleted or replaced. Takes time and room as the
 * file is large: for after a migration. Does nothing on PostgreSQL, whose autovacuum sees to that.
 */
export async function rewriteDatabase<T>(db: Database<T>): Promise<void> {
  if (dialectOf(db) !== "sqlite") return;
  await sql`pragma wal_checkpoint(truncate)`.execute(db);
  await sql`vacuum`.execute(db);
  await sql`pragma wal_checkpoint(truncate)`.execute(db);
}
