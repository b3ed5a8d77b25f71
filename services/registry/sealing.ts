import { join } from "node:path";
import { loadSealingKey } from "../../lib/identity/seal.ts";
import { type Sealer, sealerWith } from "../../lib/identity/sealer.ts";
import type { Database } from "../../lib/store/database.ts";
import type { RegistryConfig } from "./config.ts";
import type { RegistryTables } from "./tables.ts";

/**
 * What seals in this registry's database. Alone on its folder a registry makes a key there; replicas that share a database
 * need one key, which has to be given to them.
 */
export async function sealerOf(config: RegistryConfig, given: Sealer | undefined): Promise<Sealer> {
  if (given !== undefined) return given;
  if (config.databaseUrl !== undefined) {
    throw new Error(
      "REEVE_SEALING_KEY_FILE is not set: what calls say lies sealed in the database, and all registries need the same key. " +
        "Make one with `head -c 32 /dev/urandom | base64`, and give every registry and policy a file with it, mode 0600",
    );
  }
  return sealerWith(await loadSealingKey(join(config.stateDir, "sealing.key")));
}

const CHECK = "sealing-check";

/**
 * Makes sure that the key is the one that the database was sealed with, before anything is sealed with another one. Throws
 * SealError.
 */
export async function checkSealingKey(db: Database<RegistryTables>, sealer: Sealer): Promise<void> {
  await db
    .insertInto("secrets")
    .values({ name: CHECK, value: sealer.seal(CHECK, Buffer.from(CHECK)) })
    .onConflict((conflict) => conflict.column("name").doNothing())
    .execute();
  const { value } = await db.selectFrom("secrets").select("value").where("name", "=", CHECK).executeTakeFirstOrThrow();
  sealer.open(CHECK, value);
}
