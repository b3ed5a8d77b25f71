import { sql } from "kysely";
import { openDatabase } from "../../../lib/store/database.ts";
import { type PolicyTables, policyMigrations } from "../storage/tables.ts";
import type { TestPolicy } from "./test-policy.ts";

/** Changes policy's database behind its back, or looks into it: resolves with the rows. */
export async function runSql(policy: Pick<TestPolicy, "stateDir" | "databaseUrl">, text: string): Promise<unknown[]> {
  const { databaseUrl: url, stateDir } = policy;
  const where = url === undefined ? { path: `${stateDir}/policy.db` } : { url };
  const db = await openDatabase<PolicyTables>({ ...where, migrations: policyMigrations });
  try {
    return (await sql.raw(text).execute(db)).rows;
  } finally {
    await db.destroy();
  }
}
