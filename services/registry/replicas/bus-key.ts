import { randomBytes } from "node:crypto";
import type { Sealer } from "../../../lib/identity/sealer.ts";
import type { Database } from "../../../lib/store/database.ts";
import type { RegistryTables } from "../tables.ts";
import type { BusKeys } from "./sealed-message.ts";

const NAME = "replica-bus-1";

/** How long the key is. A sealed one is longer. */
const KEY_BYTES = 32;

/** The key of the messages between replicas: made by whichever replica starts first, and the same for all. */
export async function loadBusKeys(db: Database<RegistryTables>, sealer: Sealer): Promise<BusKeys> {
  await db
    .insertInto("secrets")
    .values({ name: NAME, value: sealer.seal(NAME, randomBytes(KEY_BYTES)) })
    .onConflict((conflict) => conflict.column("name").doNothing())
    .execute();
  const { value } = await db.selectFrom("secrets").select("value").where("name", "=", NAME).executeTakeFirstOrThrow();
  if (value.length !== KEY_BYTES) return busKeysOf(sealer.open(NAME, value));
  // A version before this wrote it down as it is.
  await db
    .updateTable("secrets")
    .set({ value: sealer.seal(NAME, value) })
    .where("name", "=", NAME)
    .execute();
  return busKeysOf(value);
}

/** One key as the only one there is. Throws for one that is not 32 bytes long. */
export function busKeysOf(key: Uint8Array): BusKeys {
  if (key.length !== KEY_BYTES)
    throw new Error(`the key of the messages between replicas has ${key.length} bytes, not ${KEY_BYTES}`);
  return { current: 1, keys: new Map([[1, key]]) };
}
