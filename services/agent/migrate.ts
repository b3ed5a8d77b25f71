import { openDatabase } from "../../lib/store/database.ts";
import { type AgentTables, agentMigrations } from "./runs/tables.ts";

/** Brings a database's schema up to date, as every start of the agent service does, and does nothing else. */
export async function migrateAgent(url: string): Promise<void> {
  const db = await openDatabase<AgentTables>({ url, migrations: agentMigrations });
  await db.destroy();
}
