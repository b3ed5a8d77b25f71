import { fromBinary, toBinary } from "@bufbuild/protobuf";
import type { Selectable } from "kysely";
import type { Ingress } from "../../../gen/ts/reeve/common/v1/ingress_pb.ts";
import {
  type FanOutSpec,
  FanOutSpecSchema,
  FanOutState,
  type FanOutSummary,
  FanOutSummarySchema,
} from "../../../gen/ts/reeve/fanout/v1/fan_out_service_pb.ts";
import type { Principal } from "../../../lib/auth/principal.ts";
import type { Sealer } from "../../../lib/identity/sealer.ts";
import type { Database } from "../../../lib/store/database.ts";
import type { GroupCommit } from "../../../lib/store/group-commit.ts";
import type { RegistryTables } from "../tables.ts";
import type { PlannedDevice, Waves } from "./plan.ts";

/** A fan-out as it is stored. */
export interface StoredFanOut {
  readonly id: string;
  readonly digest: string;
  readonly spec: FanOutSpec;
  readonly principal: Principal;
  readonly ingress: Ingress;
  readonly waves: Waves;
  readonly createMs: number;
  readonly state: FanOutState;
  readonly ended: boolean;
  readonly owner: string;
  readonly cancelRequested: boolean;
  /** How many waves were started. */
  readonly startedWaves: number;
  readonly permitted: boolean;
  /** Empty where none was required so far. */
  readonly approvalId: string;
  /** Of the waves that have ended; undefined before the first has. */
  readonly summary: FanOutSummary | undefined;
  readonly endMs: number | undefined;
}

/** What changes while a fan-out goes on. */
export type Progress = Partial<
  Pick<StoredFanOut, "state" | "startedWaves" | "permitted" | "approvalId"> & { summary: FanOutSummary }
>;

/** Where fan-outs are kept. Every promise resolves when the change is on disk. */
export interface FanOutStore {
  find(id: string): Promise<StoredFanOut | undefined>;
  /** Newest first. */
  list(query: { limit: number; after?: string; principalId?: string }): Promise<StoredFanOut[]>;
  /** Writes a new one, owned by this replica. False where the id is taken: nothing was written. */
  insert(
    fanOut: Pick<StoredFanOut, "id" | "digest" | "spec" | "principal" | "ingress" | "waves" | "createMs">,
  ): Promise<boolean>;
  /** Writes how far it has got. False where this replica does not own it any more: nothing was written. */
  progress(id: string, progress: Progress): Promise<boolean>;
  /** Ends it, and deletes what it was asked with. False as `progress` says. */
  end(one: StoredFanOut, state: FanOutState, summary: FanOutSummary, endMs: number): Promise<boolean>;
  requestCancel(id: string): Promise<void>;
  /** The replicas that own what has not ended. */
  owners(): Promise<string[]>;
  /** Makes this replica the owner of what these own and has not ended. */
  claim(owners: readonly string[]): Promise<StoredFanOut[]>;
  /** Lets any replica claim what this one owns. */
  release(): Promise<void>;
}

/** Fan-outs in the registry's database, whose specs are sealed. */
export function createFanOutStore(
  db: Database<RegistryTables>,
  writes: GroupCommit<RegistryTables>,
  sealer: Sealer,
  self: string,
): FanOutStore {
  const sealed = (id: string, spec: FanOutSpec) => sealer.seal(`fanout/${id}/spec`, toBinary(FanOutSpecSchema, spec));
  const read = (row: Selectable<RegistryTables["fan_outs"]>): StoredFanOut => {
    const origin = JSON.parse(row.origin) as Pick<StoredFanOut, "principal" | "ingress">;
    return {
      ...origin,
      id: row.id,
      digest: row.digest,
      spec: fromBinary(FanOutSpecSchema, sealer.open(`fanout/${row.id}/spec`, row.spec)),
      waves: JSON.parse(row.waves) as PlannedDevice[][],
      createMs: Number(row.create_ms),
      state: row.state as FanOutState,
      ended: row.ended === 1,
      owner: row.owner,
      cancelRequested: row.cancel_requested === 1,
      startedWaves: row.started_waves,
      permitted: row.permitted === 1,
      approvalId: row.approval_id,
      summary: row.summary === null ? undefined : fromBinary(FanOutSummarySchema, row.summary),
      endMs: row.end_ms === null ? undefined : Number(row.end_ms),
    };
  };
  const find = async (id: string): Promise<StoredFanOut | undefined> => {
    const row = await db.selectFrom("fan_outs").selectAll().where("id", "=", id).executeTakeFirst();
    return row && read(row);
  };
  const update = (id: string, values: Partial<RegistryTables["fan_outs"]>): Promise<boolean> =>
    writes.write(async (trx) => {
      const owned = trx.updateTable("fan_outs").set(values).where("id", "=", id).where("owner", "=", self);
      const { numUpdatedRows } = await owned.where("ended", "=", 0).executeTakeFirst();
      return numUpdatedRows === 1n;
    });

  return {
    find,
    async list({ limit, after, principalId }) {
      const last = after === undefined ? undefined : await find(after);
      let query = db.selectFrom("fan_outs").selectAll().orderBy("create_ms", "desc").orderBy("id", "desc").limit(limit);
      if (principalId !== undefined) query = query.where("principal_id", "=", principalId);
      if (last !== undefined) {
        query = query.where((eb) =>
          eb.or([
            eb("create_ms", "<", last.createMs),
            eb.and([eb("create_ms", "=", last.createMs), eb("id", "<", last.id)]),
          ]),
        );
      }
      return (await query.execute()).map(read);
    },
    insert: ({ id, digest, spec, principal, ingress, waves, createMs }) =>
      writes.write(async (trx) => {
        const row = {
          id,
          principal_id: principal.id,
          digest,
          waves: JSON.stringify(waves),
          state: FanOutState.PENDING,
          ended: 0,
          owner: self,
          cancel_requested: 0,
          started_waves: 0,
          permitted: 0,
          approval_id: "",
          origin: JSON.stringify({ principal, ingress }),
          spec: sealed(id, spec),
          summary: null,
          create_ms: createMs,
          end_ms: null,
        };
        const insert = trx.insertInto("fan_outs").values(row);
        const { numInsertedOrUpdatedRows } = await insert
          .onConflict((conflict) => conflict.column("id").doNothing())
          .executeTakeFirst();
        return numInsertedOrUpdatedRows === 1n;
      }),
    progress: (id, { state, startedWaves, permitted, approvalId, summary }) =>
      update(id, {
        ...(state !== undefined && { state }),
        ...(startedWaves !== undefined && { started_waves: startedWaves }),
        ...(permitted !== undefined && { permitted: permitted ? 1 : 0 }),
        ...(approvalId !== undefined && { approval_id: approvalId }),
        ...(summary !== undefined && { summary: toBinary(FanOutSummarySchema, summary) }),
      }),
    end({ id, spec: { params: _params, ...rest } }, state, summary, endMs) {
      const spec = sealed(id, { ...rest, purpose: "" });
      return update(id, { state, ended: 1, spec, summary: toBinary(FanOutSummarySchema, summary), end_ms: endMs });
    },
    requestCancel: (id) =>
      writes.write(async (trx) => {
        await trx
          .updateTable("fan_outs")
          .set({ cancel_requested: 1 })
          .where("id", "=", id)
          .where("ended", "=", 0)
          .execute();
      }),
    async owners() {
      const rows = await db.selectFrom("fan_outs").select("owner").distinct().where("ended", "=", 0).execute();
      return rows.map(({ owner }) => owner);
    },
    claim: (owners) =>
      writes.write(async (trx) => {
        const open = trx.updateTable("fan_outs").set({ owner: self }).where("ended", "=", 0);
        return (await open.where("owner", "in", owners).returningAll().execute()).map(read);
      }),
    release: () =>
      writes.write(async (trx) => {
        await trx.updateTable("fan_outs").set({ owner: "" }).where("ended", "=", 0).where("owner", "=", self).execute();
      }),
  };
}
