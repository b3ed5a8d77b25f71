import { randomBytes } from "node:crypto";
import { type SealingKey, seal, unseal } from "../../../lib/identity/seal.ts";
import type { Database } from "../../../lib/store/database.ts";
import type { RegistryTables } from "../tables.ts";
import type { BusKeys } from "./sealed-message.ts";

/** Keeps a secret unreadable for whoever reads the database. */
export interface Sealer {
  seal(name: string, secret: Uint8Array): Uint8Array;
  /** Throws where it was sealed with another key. */
  open(name: string, sealed: Uint8Array): Uint8Array;
}

/** A sealer with a key that every replica has. */
export function sealerWith(key: SealingKey): Sealer {
  return {
    seal: (name, secret) => seal(key, secret, name),
    open: (name, sealed) => unseal(key, sealed, name),
  };
}

const NAME = "replica-bus-1";

/** The key of the messages between replicas: made by whichever replica starts first, and the same for all. */
export async function loadBusKeys(db: Database<RegistryTables>, sealer: Sealer | undefined): Promise<BusKeys> {
  const made = randomBytes(32);
  await db
    .insertInto("secrets")
    .values({ name: NAME, value: sealer === undefined ? made : sealer.seal(NAME, made) })
    .onConflict((conflict) => conflict.column("name").doNothing())
    .execute();
  const { value } = await db.selectFrom("secrets").select("value").where("name", "=", NAME).executeTakeFirstOrThrow();
  return busKeysOf(sealer === undefined ? value : sealer.open(NAME, value));
}

/** One key as the only one there is. Throws for one that is not 32 bytes long. */
export function busKeysOf(key: Uint8Array): BusKeys {
  if (key.length !== 32) throw new Error(`the key of the messages between replicas has ${key.length} bytes, not 32`);
  return { current: 1, keys: new Map([[1, key]]) };
}
