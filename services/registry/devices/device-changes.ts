import { sql, type Transaction } from "kysely";
import { DEVICE_CHANGES, type RegistryTables } from "../tables.ts";

/** The number of a new change of the devices. Its row lock puts the changes of all replicas in order until the commit. */
export async function nextChange(trx: Transaction<RegistryTables>): Promise<number> {
  const { value } = await trx
    .updateTable("counters")
    .set({ value: sql<number>`value + 1` })
    .where("name", "=", DEVICE_CHANGES)
    .returning("value")
    .executeTakeFirstOrThrow();
  return value;
}

/** Has every replica with a session of the device ask again whether it may connect, once the transaction is committed. */
export async function recheckDevice(trx: Transaction<RegistryTables>, id: string): Promise<void> {
  const change = await nextChange(trx);
  await trx.updateTable("devices").set({ checks: sql<number>`checks + 1`, change }).where("id", "=", id).execute();
}

/** Frees the device's name and ends its streams, once the transaction is committed. It counts its dials anew. */
export async function forgetDevice(trx: Transaction<RegistryTables>, id: string): Promise<void> {
  const change = await nextChange(trx);
  await trx
    .updateTable("devices")
    .set({ removed: 1, replica_id: "", attach_count: 0, change })
    .where("id", "=", id)
    .execute();
}

/** Frees a name for one device: whichever other one has it is forgotten, once the transaction is committed. */
export async function freeName(trx: Transaction<RegistryTables>, name: string, forId: string): Promise<void> {
  const change = await nextChange(trx);
  await trx
    .updateTable("devices")
    .set({ removed: 1, replica_id: "", attach_count: 0, change })
    .where("name", "=", name)
    .where("id", "<>", forId)
    .where("removed", "=", 0)
    .execute();
}
