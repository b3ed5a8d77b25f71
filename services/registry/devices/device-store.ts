import { type Selectable, sql, type Transaction } from "kysely";
import type { LinkMode } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import type { Database } from "../../../lib/store/database.ts";
import type { GroupCommit } from "../../../lib/store/group-commit.ts";
import { DEVICE_CHANGES } from "../tables/devices.ts";
import type { RegistryTables } from "../tables.ts";

/** A device as it is stored. */
export type DeviceRow = Selectable<RegistryTables["devices"]>;

/** A device whose stream this replica is to hold. */
export interface DeviceClaim {
  name: string;
  id: string;
  publicKey: Uint8Array;
  /** The signed manifest, encoded. */
  manifest: Uint8Array;
  linkMode: LinkMode;
  /** How often it has dialed; 0 where it was dialed, which says nothing. */
  attachCount: number;
}

/** What became of taking a device's stream. */
export type Taken =
  | { kind: "taken"; row: DeviceRow }
  /** The name belongs to another key. */
  | { kind: "other_key" }
  /** It has dialed no more often than before: there are two of it, or this dial was given up long ago. */
  | { kind: "low" }
  /** The guard said no. */
  | { kind: "refused"; error: Error };

/** A last look, within the transaction that takes a stream. What it returns refuses it. */
export type Guard = (trx: Transaction<RegistryTables>) => Promise<Error | undefined>;

/** The devices in the database: the directory that all replicas share. Every change has a number, in order of commit. */
export interface DeviceStore {
  /** Says that this replica holds the device's stream from now on, which ends every older one. */
  take(device: DeviceClaim, guard?: Guard): Promise<Taken>;
  /** Writes down that this replica does not hold the device any more, unless another one claimed it meanwhile. */
  release(id: string, epoch: number): Promise<void>;
  /** The same for all streams that this replica holds. */
  releaseAll(): Promise<void>;
  /** Has every replica with a session of the device ask again whether it may connect. */
  recheck(id: string): Promise<void>;
  /** Frees the device's name. */
  remove(id: string): Promise<void>;
  /** What has changed since a change, removed devices included, in order. Leaves out what cannot be read. */
  since(change: number): Promise<DeviceRow[]>;
}

/**
 * @param self the id of this replica.
 * @param onUnreadable called once for each device whose row cannot be read; it must not keep the others out.
 */
export function createDeviceStore(
  db: Database<RegistryTables>,
  writes: GroupCommit<RegistryTables>,
  self: string,
  now: () => number,
  onUnreadable: (name: string, error: unknown) => void = () => undefined,
): DeviceStore {
  const unreadable = new Set<string>();
  const change = <R>(job: (trx: Transaction<RegistryTables>, number: number) => Promise<R>): Promise<R> =>
    // The number first of all, since it puts the changes of all replicas in order.
    writes.write(async (trx) => job(trx, await nextChange(trx)));
  const released = (trx: Transaction<RegistryTables>, number: number) =>
    trx
      .updateTable("devices")
      .set({ replica_id: "", last_seen_ms: now(), change: number })
      .where("replica_id", "=", self);
  const changed = (after: number) =>
    db.selectFrom("devices").where("change", ">", after).orderBy("change").orderBy("name");
  const readable = async (after: number): Promise<DeviceRow[]> => {
    const rows: DeviceRow[] = [];
    for (const { name } of await changed(after).select("name").execute()) {
      try {
        rows.push(...(await db.selectFrom("devices").selectAll().where("name", "=", name).execute()));
      } catch (error: unknown) {
        if (!isUnreadable(error)) throw error;
        if (!unreadable.has(name)) onUnreadable(name, error);
        unreadable.add(name);
      }
    }
    return rows;
  };

  return {
    take: (device, guard) =>
      change(async (trx, number) => {
        const error = await guard?.(trx);
        if (error !== undefined) return { kind: "refused", error };
        const old = await trx.selectFrom("devices").selectAll().where("name", "=", device.name).executeTakeFirst();
        const same = old !== undefined && Buffer.from(old.public_key).equals(device.publicKey);
        if (old !== undefined && !same && old.removed === 0) return { kind: "other_key" };
        if (same && old.removed === 0 && device.attachCount > 0 && device.attachCount <= old.attach_count) {
          return { kind: "low" };
        }
        const row = {
          id: device.id,
          public_key: device.publicKey,
          manifest: device.manifest,
          last_seen_ms: now(),
          link_mode: device.linkMode,
          replica_id: self,
          epoch: (old?.epoch ?? 0) + 1,
          attach_count: device.attachCount > 0 || !same ? device.attachCount : old.attach_count,
          removed: 0,
          change: number,
        };
        // A device that goes by another name now leaves its old one.
        await trx
          .updateTable("devices")
          .set({ removed: 1, change: number })
          .where("id", "=", device.id)
          .where("name", "<>", device.name)
          .where("removed", "=", 0)
          .execute();
        await trx
          .insertInto("devices")
          .values({ name: device.name, ...row })
          .onConflict((conflict) => conflict.column("name").doUpdateSet(row))
          .execute();
        return { kind: "taken", row: { name: device.name, checks: old?.checks ?? 0, ...row } };
      }),
    release: (id, epoch) =>
      change(async (trx, number) => {
        await released(trx, number).where("id", "=", id).where("epoch", "=", epoch).execute();
      }),
    releaseAll: () =>
      change(async (trx, number) => {
        await released(trx, number).execute();
      }),
    recheck: (id) => writes.write((trx) => recheckDevice(trx, id)),
    remove: (id) => writes.write((trx) => forgetDevice(trx, id)),
    async since(after) {
      try {
        return await changed(after).selectAll().execute();
      } catch (error: unknown) {
        if (!isUnreadable(error)) throw error;
        return readable(after);
      }
    },
  };
}

/** The number of a new change of the devices. Its row lock puts the changes of all replicas in order until the commit. */
async function nextChange(trx: Transaction<RegistryTables>): Promise<number> {
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
  await (await forgotten(trx)).where("id", "=", id).execute();
}

/** Frees a name for one device: any other one that has it is forgotten, once the transaction is committed. */
export async function freeName(trx: Transaction<RegistryTables>, name: string, forId: string): Promise<void> {
  await (await forgotten(trx)).where("name", "=", name).where("id", "<>", forId).where("removed", "=", 0).execute();
}

/** The device that has a name, enrolled or dialed; undefined where the name is free. */
export async function pinnedDevice(
  db: Database<RegistryTables>,
  name: string,
): Promise<{ deviceId: string } | undefined> {
  const named = db.selectFrom("devices").select("id as deviceId").where("name", "=", name);
  return named.where("removed", "=", 0).executeTakeFirst();
}

async function forgotten(trx: Transaction<RegistryTables>) {
  const change = await nextChange(trx);
  const query = trx.updateTable("devices").set({ removed: 1, replica_id: "", attach_count: 0, change });
  return { where: query.where.bind(query) };
}

/** True for a number that no number of this language holds. An outage of the database is something else. */
function isUnreadable(error: unknown): boolean {
  return error instanceof RangeError || (error instanceof Error && error.cause instanceof RangeError);
}
