import { openDatabase } from "../../lib/store/database.ts";
import { type RegistryTables, registryMigrations } from "./tables.ts";

/** Brings a database's schema up to date, as every start of a registry does, and does nothing else. */
export async function migrateRegistry(url: string): Promise<void> {
  const db = await openDatabase<RegistryTables>({ url, migrations: registryMigrations });
  await db.destroy();
}
