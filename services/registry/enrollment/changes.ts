import { randomBytes } from "node:crypto";
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import type { Transaction } from "kysely";
import {
  type DeviceIdentity,
  type DeviceIdentityChange,
  DeviceIdentitySchema,
} from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import { within } from "../../../lib/async/within.ts";
import type { Logger } from "../../../lib/log/log.ts";
import type { Database } from "../../../lib/store/database.ts";
import type { GroupCommit } from "../../../lib/store/group-commit.ts";
import type { RegistryTables } from "../tables.ts";
import { notRecorded } from "./refusals.ts";

/** What a change brings about once it is on record. */
export type Effect =
  /** An enrollment goes from one of these states to another. */
  | { kind: "state"; enrollmentId: string; from: number[]; to: number }
  /** An authority signs from now on. */
  | { kind: "authority"; id: string };

/** What is recorded of a change. */
export type ChangeRecord = MessageInitShape<typeof DeviceIdentitySchema> & { change: DeviceIdentityChange };

/** Brings an effect about, in a transaction; what is returned runs after the commit. */
export type Apply = (trx: Transaction<RegistryTables>, effect: Effect) => Promise<(() => Promise<void>) | undefined>;

/**
 * The changes that the audit log does not have yet. What lets a device in waits for its record: it is written down as
 * planned, recorded, and takes effect in the transaction that forgets the plan. So the log never lacks what happened, and
 * what it says does happen, after a crash too. What shuts a device out takes effect at once and is recorded as soon as
 * policy is available: a log that is unavailable must not keep a stolen device in.
 */
export interface Changes {
  /** Plans a change, within the caller's transaction. Returns its id, for `applied`. */
  plan(trx: Transaction<RegistryTables>, record: ChangeRecord, effect: Effect): Promise<string>;
  /** Writes down, within the caller's transaction, what happens with it, to be recorded for as long as it takes. */
  note(trx: Transaction<RegistryTables>, record: ChangeRecord): Promise<void>;
  /** Resolves when a planned change is recorded and has taken effect. POLICY_UNAVAILABLE when that takes too long. */
  applied(changeId: string): Promise<void>;
  /** Records something now, planning nothing. POLICY_UNAVAILABLE when that takes too long. */
  record(record: ChangeRecord & { changeId: string }): Promise<void>;
  /** Looks for changes to record, soon. After a commit with a `note`. */
  wake(): void;
  close(): Promise<void>;
}

export interface ChangesOptions {
  db: Database<RegistryTables>;
  writes: GroupCommit<RegistryTables>;
  /** Writes into the audit log; waits for policy for as long as it takes. */
  recordIdentity(change: DeviceIdentity): Promise<bigint>;
  apply: Apply;
  logger: Logger;
  /** How long a caller waits for a record, in milliseconds. Default 10000. */
  waitMs?: number;
  /** How often changes that another process left behind are looked for, in milliseconds. Default 1000. */
  pollMs?: number;
}

/** Changes read at a time. */
const BATCH = 100;

/** Records changes, those that an earlier process left behind too. */
export function createChanges(options: ChangesOptions): Changes {
  const { db, writes, recordIdentity, apply, logger, waitMs = 10_000, pollMs = 1000 } = options;
  const closed = Promise.withResolvers<"closed">();
  const running = new Map<string, Promise<void>>();
  let isClosed = false;
  let wake = Promise.withResolvers<void>();

  const carryOut = async ({ id, record }: { id: string; record: Uint8Array }): Promise<void> => {
    const done = await Promise.race([recordIdentity(fromBinary(DeviceIdentitySchema, record)), closed.promise]);
    if (done === "closed") throw notRecorded();
    const after = await writes.write(async (trx) => {
      const row = await trx
        .deleteFrom("enrollment_changes")
        .where("id", "=", id)
        .returning("effect")
        .executeTakeFirst();
      // Another replica was faster.
      return row === undefined || row.effect === "" ? undefined : apply(trx, JSON.parse(row.effect) as Effect);
    });
    await after?.();
  };
  const carryOutOnce = (row: { id: string; record: Uint8Array }): Promise<void> => {
    const known = running.get(row.id);
    if (known !== undefined) return known;
    const started = carryOut(row).finally(() => running.delete(row.id));
    started.catch(
      (err: unknown) => isClosed || logger.error({ err, change: row.id }, "enrollment change not recorded yet"),
    );
    running.set(row.id, started);
    return started;
  };
  const find = (id: string) =>
    db.selectFrom("enrollment_changes").select(["id", "record"]).where("id", "=", id).executeTakeFirst();
  const carryOutAll = async (): Promise<void> => {
    const rows = await db
      .selectFrom("enrollment_changes")
      .select(["id", "record"])
      .orderBy("row")
      .limit(BATCH)
      .execute();
    // Not awaited: policy may be unavailable, and what comes later must not be looked for later because of that.
    for (const row of rows) carryOutOnce(row).catch(() => undefined);
  };
  const insert = async (trx: Transaction<RegistryTables>, record: ChangeRecord, effect: string): Promise<string> => {
    const change = create(DeviceIdentitySchema, { ...record, changeId: record.changeId || newChangeId(record) });
    const row = { id: change.changeId, record: toBinary(DeviceIdentitySchema, change), effect };
    await trx
      .insertInto("enrollment_changes")
      .values(row)
      .onConflict((conflict) => conflict.doNothing())
      .execute();
    return change.changeId;
  };
  const loop = (async () => {
    while (!isClosed) {
      await carryOutAll().catch((err: unknown) => logger.error({ err }, "enrollment changes not readable"));
      await within(Promise.race([wake.promise, closed.promise]), pollMs);
      wake = Promise.withResolvers();
    }
  })();

  return {
    plan: (trx, record, effect) => insert(trx, record, JSON.stringify(effect)),
    note: async (trx, record) => void (await insert(trx, record, "")),
    async applied(changeId) {
      const row = await find(changeId);
      if (row !== undefined) await recordedWithin(carryOutOnce(row), waitMs);
    },
    record: (record) => recordedWithin(recordIdentity(create(DeviceIdentitySchema, record)), waitMs),
    wake: () => wake.resolve(),
    async close() {
      isClosed = true;
      closed.resolve("closed");
      await loop;
      await Promise.allSettled(running.values());
    },
  };
}

function newChangeId(record: ChangeRecord): string {
  return `${record.enrollmentId || record.change}/${record.change}/${randomBytes(8).toString("hex")}`;
}

/** POLICY_UNAVAILABLE where the work takes longer than that; the work goes on. */
async function recordedWithin(work: Promise<unknown>, ms: number): Promise<void> {
  if (!(await within(work, ms))) throw notRecorded();
}
