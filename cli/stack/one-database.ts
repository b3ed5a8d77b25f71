import { join } from "node:path";
import type { Logger } from "../../lib/log/log.ts";
import { openDatabase } from "../../lib/store/database.ts";
import { createGroupCommit, type SharedDatabase } from "../../lib/store/group-commit.ts";
import { type AgentTables, agentMigrations } from "../../services/agent/runs/tables.ts";
import { type PolicyTables, policyMigrations } from "../../services/policy/storage/tables.ts";
import { type RegistryTables, registryMigrations } from "../../services/registry/tables.ts";
import { notWritten } from "../../services/registry/wiring/state.ts";
import { databaseFile } from "../database-file.ts";
import { moveIntoOne } from "./move-databases.ts";

/** The database of registry, policy and agent service, as each of them sees it: a call and its decision share a commit. */
export interface OneDatabase {
  policy: SharedDatabase<PolicyTables>;
  registry: SharedDatabase<RegistryTables>;
  agent: SharedDatabase<AgentTables>;
  /** Finishes what was begun, then closes it. */
  close(): Promise<void>;
}

/** Opens the database in a data folder. Of a folder where each service has one of its own, it moves both into it first. */
export async function openOneDatabase(dataDir: string, logger: Logger): Promise<OneDatabase> {
  const path = databaseFile(dataDir);
  await moveIntoOne(path, [
    { path: join(dataDir, "policy", "policy.db"), migrations: policyMigrations },
    { path: join(dataDir, "registry", "registry.db"), migrations: registryMigrations },
  ]);
  const migrations = [...policyMigrations, ...registryMigrations, ...agentMigrations];
  const db = await openDatabase<PolicyTables & RegistryTables & AgentTables>({ path, migrations });
  const commits = createGroupCommit(db, { onLazyError: notWritten(logger) });
  // The other services' tables do not matter to any of them, and Kysely's types cannot say so.
  const shared: unknown = { db, commits };
  return {
    policy: shared as SharedDatabase<PolicyTables>,
    registry: shared as SharedDatabase<RegistryTables>,
    agent: shared as SharedDatabase<AgentTables>,
    async close() {
      await commits.close();
      await db.destroy();
    },
  };
}
