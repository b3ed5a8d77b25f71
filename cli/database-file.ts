import { join } from "node:path";

/** The database of registry and policy in the data folder of `reeve up`. */
export function databaseFile(dataDir: string): string {
  return join(dataDir, "reeve.db");
}
