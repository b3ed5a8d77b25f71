import { PostgresAdapter, PostgresDialect, type PostgresPool } from "kysely";

/** Kysely's dialect for PostgreSQL. Rows cannot be streamed: read page by page. */
export function postgresDialect(pool: PostgresPool): PostgresDialect {
  return new LockedMigrationDialect({ pool });
}

class LockedMigrationDialect extends PostgresDialect {
  override createAdapter(): PostgresAdapter {
    return new LockedMigrationAdapter();
  }
}

/** `migrate` already holds a lock, which ends with its transaction. Kysely's own would outlive one that failed. */
class LockedMigrationAdapter extends PostgresAdapter {
  override async acquireMigrationLock(): Promise<void> {}

  override async releaseMigrationLock(): Promise<void> {}
}
