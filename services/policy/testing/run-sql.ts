import { sql } from "kysely";
import { outboxMigration } from "../../../lib/events/outbox.ts";
import { openDatabase } from "../../../lib/store/database.ts";
import { leaseMigration } from "../../../lib/store/lease.ts";
import { type PolicyTables, policyMigrations } from "../storage/tables.ts";
import type { TestPolicy } from "./test-policy.ts";

/** All that is in policy's database. */
export const testMigrations = [...policyMigrations, outboxMigration, leaseMigration];

/** Changes policy's database behind its back, or looks into it: resolves with the rows. */
export async function runSql(policy: Pick<TestPolicy, "stateDir" | "databaseUrl">, text: string): Promise<unknown[]> {
  const { databaseUrl: url, stateDir } = policy;
  const where = url === undefined ? { path: `${stateDir}/policy.db` } : { url };
  const db = await openDatabase<PolicyTables>({ ...where, migrations: testMigrations });
  try {
    return (await sql.raw(text).execute(db)).rows;
  } finally {
    await db.destroy();
  }
}
