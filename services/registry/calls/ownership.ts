import type { Database } from "../../../lib/store/database.ts";
import type { GroupCommit } from "../../../lib/store/group-commit.ts";
import type { RegistryTables } from "../tables.ts";
import type { Bodies } from "./bodies.ts";
import { type PendingOutcome, type StoredCall, storedCallIn } from "./store.ts";
import { STORED_COLUMNS } from "./stored-row.ts";

/** Which replica owns a call, in the database. A call is owned by one at a time, however many try. */
export interface Ownership {
  /** The replicas that own what has not ended, or that have outcomes to bring into the audit log. Empty: none does. */
  owners(): Promise<string[]>;
  /** Claims what these own. Safe when several try: each call goes to one. */
  claim(owners: readonly string[]): Promise<Claimed>;
  /** What this replica owns and has not ended, by id. */
  mine(): Promise<string[]>;
  /** Outcomes that this replica has to bring into the audit log, oldest first. */
  myOutcomes(): Promise<PendingOutcome[]>;
  /** Whether this replica owns a call. */
  isMine(callId: string): Promise<boolean>;
  /** Notes a request to cancel a call; its owner looks for that. */
  wantCancel(callId: string): Promise<void>;
  /** The calls that this replica owns and a caller requested to cancel, by id. */
  wantedCancels(): Promise<string[]>;
  /** Lets any replica claim what this one owns. */
  release(): Promise<void>;
}

/** What was claimed. */
export interface Claimed {
  /** Calls that have not ended, oldest first. */
  calls: StoredCall[];
  outcomes: PendingOutcome[];
}

/** @param self this replica. */
export function createOwnership(
  db: Database<RegistryTables>,
  writes: GroupCommit<RegistryTables>,
  self: string,
  bodies: Bodies,
): Ownership {
  const mine = () => db.selectFrom("calls").select("id").where("ended", "=", 0).where("owner", "=", self);

  return {
    async owners() {
      const open = db.selectFrom("calls").select("owner").where("ended", "=", 0);
      const pending = db.selectFrom("calls").select("owner").where("outcome_pending", "=", 1);
      return (await open.union(pending).execute()).map(({ owner }) => owner);
    },
    claim: (owners) =>
      writes.write(async (trx) => {
        const open = await trx
          .updateTable("calls")
          .set({ owner: self })
          .where("ended", "=", 0)
          .where("owner", "in", owners)
          .returning([...STORED_COLUMNS, "row"])
          .execute();
        const pending = await trx
          .updateTable("calls")
          .set({ owner: self })
          .where("outcome_pending", "=", 1)
          .where("owner", "in", owners)
          .returning(["row", "id", "outcome"])
          .execute();
        return {
          calls: inOrder(open).map((row) => storedCallIn(row, bodies)),
          outcomes: outcomesIn(inOrder(pending)),
        };
      }),
    mine: async () => (await mine().execute()).map(({ id }) => id),
    async myOutcomes() {
      const rows = await db
        .selectFrom("calls")
        .select(["id", "outcome"])
        .where("outcome_pending", "=", 1)
        .where("owner", "=", self)
        .orderBy("row", "asc")
        .limit(1000)
        .execute();
      return outcomesIn(rows);
    },
    isMine: async (callId) => (await mine().where("id", "=", callId).execute()).length === 1,
    wantCancel: (callId) =>
      writes.write(async (trx) => {
        await trx
          .updateTable("calls")
          .set({ cancel_wanted: 1 })
          .where("id", "=", callId)
          .where("ended", "=", 0)
          .execute();
      }),
    wantedCancels: async () => (await mine().where("cancel_wanted", "=", 1).execute()).map(({ id }) => id),
    release: () =>
      writes.write(async (trx) => {
        const release = trx.updateTable("calls").set({ owner: "" }).where("owner", "=", self);
        await release.where("ended", "=", 0).execute();
        await release.where("outcome_pending", "=", 1).execute();
      }),
  };
}

function inOrder<R extends { row: number }>(rows: R[]): R[] {
  return rows.sort((a, b) => a.row - b.row);
}

function outcomesIn(rows: readonly { id: string; outcome: Uint8Array | null }[]): PendingOutcome[] {
  return rows.flatMap(({ id, outcome }) => (outcome === null ? [] : [{ callId: id, outcome }]));
}
