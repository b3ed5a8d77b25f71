import { createFrontier, type TreeNode } from "../../../lib/merkle/frontier.ts";
import type { NodeId, ProofPlan } from "../../../lib/merkle/plan.ts";
import { edgePlan, foldEdge, foldPlan } from "../../../lib/merkle/plan.ts";
import { prepared, type QueryRunner } from "../../../lib/store/prepared.ts";
import type { PolicyDatabase } from "../storage/tables.ts";

/** The log's tree as it is stored. Pass the transaction inside one, the database elsewhere. */
export interface TreeStore {
  /** How many records the log holds; the tree over them may still be smaller. */
  size(on: QueryRunner): Promise<number>;
  /** The stored hashes of nodes, in their order. Throws where one is missing: the database is damaged. */
  hashes(on: QueryRunner, ids: readonly NodeId[]): Promise<Uint8Array[]>;
  /** The root of the first so many records. */
  rootAt(on: QueryRunner, size: number): Promise<Uint8Array>;
  /** The hashes of a proof. */
  prove(on: QueryRunner, plan: ProofPlan): Promise<Uint8Array[]>;
}

/** The tree in the tables records (leaves) and nodes (all above). */
export function createTreeStore(db: PolicyDatabase): TreeStore {
  const last = prepared(() => db.selectFrom("records").select((eb) => eb.fn.max<number | null>("idx").as("idx")));
  const leaf = prepared((p: { index: number }) => db.selectFrom("records").select("hash").where("idx", "=", p.index));
  const node = prepared((p: { level: number; index: number }) =>
    db.selectFrom("nodes").select("hash").where("level", "=", p.level).where("idx", "=", p.index),
  );
  const hashOf = async (on: QueryRunner, { level, index }: NodeId): Promise<Uint8Array> => {
    const row = level === 0 ? await leaf.first(on, { index }) : await node.first(on, { level, index });
    if (row) return row.hash;
    throw new Error(`the audit log's node ${level}/${index} is missing`);
  };
  const hashes = async (on: QueryRunner, ids: readonly NodeId[]): Promise<Uint8Array[]> => {
    const found: Uint8Array[] = [];
    for (const id of ids) found.push(await hashOf(on, id));
    return found;
  };
  return {
    size: async (on) => ((await last.first(on, {}))?.idx ?? -1) + 1,
    hashes,
    rootAt: async (on, size) => foldEdge(await hashes(on, edgePlan(size))),
    async prove(on, plan) {
      const ids = plan.flat();
      const found = await hashes(on, ids);
      const byId = new Map(ids.map((id, i) => [keyOf(id), found[i] as Uint8Array]));
      return foldPlan(plan, (id) => byId.get(keyOf(id)) as Uint8Array);
    },
  };
}

function keyOf({ level, index }: NodeId): string {
  return `${level}/${index}`;
}

/** Builds the tree over the records. */
export interface TreeBuilder {
  /**
   * Stores the nodes over the records from `built` on, at most so many records, and returns how many the tree now holds
   * with its root. Runs in the caller's transaction.
   */
  build(trx: QueryRunner, built: number, most: number): Promise<{ size: number; root: Uint8Array }>;
}

/** How many nodes a statement inserts. Each is compiled once: compiling takes longer than inserting. */
const ROWS_AT_ONCE = [64, 8, 1];

/** A statement that inserts so many nodes; its parameters are the nodes' columns, numbered. */
function insertOf(db: PolicyDatabase, rows: number) {
  const insert = prepared((p: Record<string, number | Uint8Array>) =>
    db.insertInto("nodes").values(
      Array.from({ length: rows }, (_, i) => ({
        level: p[`level${i}`] as number,
        idx: p[`idx${i}`] as number,
        hash: p[`hash${i}`] as Uint8Array,
      })),
    ),
  );
  return {
    rows,
    run: (on: QueryRunner, nodes: readonly TreeNode[]) =>
      insert.run(
        on,
        Object.fromEntries(
          nodes.flatMap(({ level, index, hash }, i) => [
            [`level${i}`, level],
            [`idx${i}`, index],
            [`hash${i}`, hash],
          ]),
        ),
      ),
  };
}

/** A builder on the tables records and nodes. */
export function createTreeBuilder(db: PolicyDatabase, tree: TreeStore): TreeBuilder {
  const leaves = prepared((p: { from: number; limit: number }) =>
    db.selectFrom("records").select("hash").where("idx", ">=", p.from).orderBy("idx").limit(p.limit),
  );
  const inserts = ROWS_AT_ONCE.map((rows) => insertOf(db, rows));
  const store = async (trx: QueryRunner, nodes: readonly TreeNode[]): Promise<void> => {
    let from = 0;
    for (const { rows, run } of inserts) {
      for (; nodes.length - from >= rows; from += rows) await run(trx, nodes.slice(from, from + rows));
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
