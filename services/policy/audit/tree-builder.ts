import { createFrontier, type TreeNode } from "../../../lib/merkle/frontier.ts";
import { edgePlan } from "../../../lib/merkle/plan.ts";
import { prepared, type QueryRunner } from "../../../lib/store/prepared.ts";
import type { PolicyDatabase } from "../tables.ts";
import type { TreeStore } from "./tree-store.ts";

/** Builds the tree over the records. */
export interface TreeBuilder {
  /**
   * Stores the nodes over the records from `built` on, at most so many records, and returns how many the tree now holds
   * with its root. Runs in the caller's transaction.
   */
  build(trx: QueryRunner, built: number, most: number): Promise<{ size: number; root: Uint8Array }>;
}

/** Nodes in one statement: three parameters each, of which SQLite takes 32766. */
const ROWS_AT_ONCE = 64;

/** A builder on the tables records and nodes. */
export function createTreeBuilder(db: PolicyDatabase, tree: TreeStore): TreeBuilder {
  const leaves = prepared((p: { from: number; limit: number }) =>
    db.selectFrom("records").select("hash").where("idx", ">=", p.from).orderBy("idx").limit(p.limit),
  );
  const store = async (trx: QueryRunner, nodes: readonly TreeNode[]): Promise<void> => {
    for (let from = 0; from < nodes.length; from += ROWS_AT_ONCE) {
      const rows = nodes
        .slice(from, from + ROWS_AT_ONCE)
        .map(({ level, index, hash }) => ({ level, idx: index, hash }));
      await trx.executeQuery(db.insertInto("nodes").values(rows).compile());
    }
  };
  return {
    async build(trx, built, most) {
      const edge = await tree.hashes(trx, edgePlan(built));
      const frontier = createFrontier({ size: built, edge });
      const added = await leaves.all(trx, { from: built, limit: most });
      const nodes = added.flatMap(({ hash }) => frontier.append(hash)).filter((node) => node.level > 0);
      await store(trx, nodes);
      return { size: frontier.size, root: frontier.root() };
    },
  };
}
