import { fromBinary, toBinary } from "@bufbuild/protobuf";
import type { Selectable } from "kysely";
import {
  FiringState,
  type ScheduleSpec,
  ScheduleSpecSchema,
} from "../../../gen/ts/reeve/schedule/v1/schedule_service_pb.ts";
import type { Sealer } from "../../../lib/identity/sealer.ts";
import type { Database } from "../../../lib/store/database.ts";
import type { GroupCommit } from "../../../lib/store/group-commit.ts";
import type { RegistryTables } from "../tables.ts";

/** A schedule as it is stored. */
export interface StoredSchedule {
  readonly name: string;
  readonly spec: ScheduleSpec;
  readonly digest: string;
  readonly creator: { readonly id: string; readonly name: string };
  readonly createMs: number;
  /** Undefined while it is paused. */
  readonly nextMs: number | undefined;
}

/** One time of a schedule. */
export interface StoredFiring {
  readonly schedule: string;
  readonly scheduledMs: number;
  /** Empty where nothing is called. */
  readonly callId: string;
  readonly state: FiringState;
  readonly manual: boolean;
  readonly message: string;
}

/** Where schedules are kept. Every promise of a change resolves when it is on disk. */
export interface ScheduleStore {
  find(name: string): Promise<StoredSchedule | undefined>;
  /** By name. */
  list(query: { limit: number; after: string }): Promise<StoredSchedule[]>;
  /** False where the name is taken: nothing was written. */
  insert(schedule: StoredSchedule): Promise<boolean>;
  /** Pauses it (undefined) or has it fire next at a time. False where there is none of that name. */
  setNext(name: string, nextMs: number | undefined): Promise<boolean>;
  remove(name: string): Promise<boolean>;
  /** The names of those whose time has come, the earliest first. */
  due(nowMs: number): Promise<string[]>;
  /** When the first of all fires next. */
  firstMs(): Promise<number | undefined>;
  /**
   * Takes one time of a schedule, for this replica alone: writes its firing and when it fires next, and forgets firings from
   * before `keepFromMs`. False where another replica has it, or where the schedule was paused or removed: nothing was written.
   */
  claim(firing: StoredFiring, nextMs: number, keepFromMs: number): Promise<boolean>;
  /** Writes a firing that was asked for. False where there is one of the same time. */
  add(firing: StoredFiring): Promise<boolean>;
  /** Writes what became of a firing that was claimed. */
  finish(firing: StoredFiring): Promise<void>;
  /** Firings that were claimed and have not come to anything yet. */
  claimed(): Promise<StoredFiring[]>;
  /** Newest first. */
  firings(schedule: string, limit: number): Promise<StoredFiring[]>;
}

/** Schedules in the registry's database, whose specs are sealed. */
export function createScheduleStore(
  db: Database<RegistryTables>,
  writes: GroupCommit<RegistryTables>,
  sealer: Sealer,
): ScheduleStore {
  const place = (name: string) => `schedule/${name}/spec`;
  const read = (row: Selectable<RegistryTables["schedules"]>): StoredSchedule => ({
    name: row.name,
    spec: fromBinary(ScheduleSpecSchema, sealer.open(place(row.name), row.spec)),
    digest: row.digest,
    creator: JSON.parse(row.creator) as StoredSchedule["creator"],
    createMs: Number(row.create_ms),
    nextMs: row.next_ms === null ? undefined : Number(row.next_ms),
  });
  const all = () => db.selectFrom("schedules").selectAll();
  const firings = () => db.selectFrom("schedule_firings").selectAll();
  return {
    async find(name) {
      const row = await all().where("name", "=", name).executeTakeFirst();
      return row && read(row);
    },
    async list({ limit, after }) {
      return (await all().where("name", ">", after).orderBy("name").limit(limit).execute()).map(read);
    },
    insert: ({ name, spec, digest, creator, createMs, nextMs = null }) =>
      writes.write(async (trx) => {
        const sealed = sealer.seal(place(name), toBinary(ScheduleSpecSchema, spec));
        const row = {
          name,
          spec: sealed,
          digest,
          creator: JSON.stringify(creator),
          create_ms: createMs,
          next_ms: nextMs,
        };
        const { numInsertedOrUpdatedRows } = await trx
          .insertInto("schedules")
          .values(row)
          .onConflict((conflict) => conflict.column("name").doNothing())
          .executeTakeFirst();
        return numInsertedOrUpdatedRows === 1n;
      }),
    setNext: (name, nextMs) =>
      writes.write(async (trx) => {
        const update = trx
          .updateTable("schedules")
          .set({ next_ms: nextMs ?? null })
          .where("name", "=", name);
        return (await update.executeTakeFirst()).numUpdatedRows === 1n;
      }),
    remove: (name) =>
      writes.write(async (trx) => {
        await trx.deleteFrom("schedule_firings").where("schedule", "=", name).execute();
        const { numDeletedRows } = await trx.deleteFrom("schedules").where("name", "=", name).executeTakeFirst();
        return numDeletedRows === 1n;
      }),
    async due(nowMs) {
      const due = db.selectFrom("schedules").select("name").where("next_ms", "<=", nowMs);
      return (await due.orderBy("next_ms").limit(100).execute()).map(({ name }) => name);
    },
    async firstMs() {
      const first = db.selectFrom("schedules").select("next_ms").where("next_ms", "is not", null);
      const row = await first.orderBy("next_ms").limit(1).executeTakeFirst();
      return row?.next_ms == null ? undefined : Number(row.next_ms);
    },
    claim: (firing, nextMs, keepFromMs) =>
      writes.write(async (trx) => {
        const { schedule, scheduledMs } = firing;
        const mine = trx.updateTable("schedules").set({ next_ms: nextMs }).where("name", "=", schedule);
        if ((await mine.where("next_ms", "=", scheduledMs).executeTakeFirst()).numUpdatedRows !== 1n) return false;
        const old = trx.deleteFrom("schedule_firings").where("schedule", "=", schedule);
        await old.where("scheduled_ms", "<", keepFromMs).execute();
        // A time that was fired before the clock was set back is not fired again.
        const { numInsertedOrUpdatedRows } = await trx
          .insertInto("schedule_firings")
          .values(firingRow(firing))
          .onConflict((conflict) => conflict.columns(["schedule", "scheduled_ms"]).doNothing())
          .executeTakeFirst();
        return numInsertedOrUpdatedRows === 1n;
      }),
    add: (firing) =>
      writes.write(async (trx) => {
        const insert = trx.insertInto("schedule_firings").values(firingRow(firing));
        const { numInsertedOrUpdatedRows } = await insert
          .onConflict((conflict) => conflict.columns(["schedule", "scheduled_ms"]).doNothing())
          .executeTakeFirst();
        return numInsertedOrUpdatedRows === 1n;
      }),
    finish: ({ schedule, scheduledMs, state, callId, message }) =>
      writes.write(async (trx) => {
        const update = trx.updateTable("schedule_firings").set({ state, call_id: callId, message });
        const one = update.where("schedule", "=", schedule).where("scheduled_ms", "=", scheduledMs);
        await one.where("state", "=", FiringState.CLAIMED).execute();
      }),
    async claimed() {
      return (await firings().where("state", "=", FiringState.CLAIMED).limit(100).execute()).map(readFiring);
    },
    async firings(schedule, limit) {
      const newest = firings().where("schedule", "=", schedule).orderBy("scheduled_ms", "desc").limit(limit);
      return (await newest.execute()).map(readFiring);
    },
  };
}

type FiringRow = RegistryTables["schedule_firings"];

function firingRow({ schedule, scheduledMs, callId, state, manual, message }: StoredFiring): FiringRow {
  return { schedule, scheduled_ms: scheduledMs, call_id: callId, state, manual: manual ? 1 : 0, message };
}

function readFiring(row: Selectable<FiringRow>): StoredFiring {
  return {
    schedule: row.schedule,
    scheduledMs: Number(row.scheduled_ms),
    callId: row.call_id,
    state: row.state as FiringState,
    manual: row.manual === 1,
    message: row.message,
  };
}
