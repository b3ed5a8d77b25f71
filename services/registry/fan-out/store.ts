import type { Database } from "../../../lib/store/database.ts";
import type { GroupCommit } from "../../../lib/store/group-commit.ts";
import { prepared } from "../../../lib/store/prepared.ts";
import type { RegistryTables } from "../tables.ts";
import type { PlannedDevice, Waves } from "./plan.ts";

/** A fan-out as it is stored. */
export interface StoredFanOut {
  id: string;
  principalId: string;
  digest: string;
  waves: Waves;
  /** Undefined until policy has permitted the whole. */
  permission: { approvalId: string } | undefined;
}

/** Where fan-outs are kept. Every promise resolves when the change is on disk. */
export interface FanOutStore {
  find(id: string): Promise<StoredFanOut | undefined>;
  /** Writes a new one down. False where the id is taken: nothing was written. */
  insert(fanOut: Omit<StoredFanOut, "permission">): Promise<boolean>;
  /** Policy has permitted the whole, by an approval or (empty) without one. */
  permit(id: string, approvalId: string): Promise<void>;
}

/** Fan-outs in the registry's database. */
export function createFanOutStore(db: Database<RegistryTables>, writes: GroupCommit<RegistryTables>): FanOutStore {
  const find = prepared((p: { id: string }) => db.selectFrom("fan_outs").selectAll().where("id", "=", p.id));
  const insert = prepared((p: { id: string; principal: string; digest: string; waves: string }) =>
    db
      .insertInto("fan_outs")
      .values({ id: p.id, principal_id: p.principal, digest: p.digest, waves: p.waves, permitted: 0, approval_id: "" })
      .onConflict((conflict) => conflict.column("id").doNothing()),
  );
  const permit = prepared((p: { id: string; approvalId: string }) =>
    db.updateTable("fan_outs").set({ permitted: 1, approval_id: p.approvalId }).where("id", "=", p.id),
  );
  return {
    async find(id) {
      const row = await find.first(db, { id });
      return (
        row && {
          id,
          principalId: row.principal_id,
          digest: row.digest,
          waves: JSON.parse(row.waves) as PlannedDevice[][],
          permission: row.permitted === 1 ? { approvalId: row.approval_id } : undefined,
        }
      );
    },
    async insert({ id, principalId, digest, waves }) {
      const row = { id, principal: principalId, digest, waves: JSON.stringify(waves) };
      return (await writes.write((trx) => insert.run(trx, row))) === 1;
    },
    permit: async (id, approvalId) => void (await writes.write((trx) => permit.run(trx, { id, approvalId }))),
  };
}
