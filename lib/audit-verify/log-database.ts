import { type ControlledTransaction, Kysely } from "kysely";
import { postgresDialect } from "../store/postgres-dialect.ts";
import { createPostgresPool } from "../store/postgres-pool.ts";
import { parsePostgresUrl } from "../store/postgres-url.ts";
import type { LogSource, StoredEntry } from "./log-source.ts";

/** Records that are fetched at a time. */
const PAGE = 500;

/** The highest level that a tree of 2^53 records has. */
const TOP_LEVEL = 53;

/** The part of policy's database that holds the log. */
interface LogTables {
  records: { idx: number; leaf: Uint8Array; hash: Uint8Array };
  nodes: { level: number; idx: number; hash: Uint8Array };
  checkpoints: { size: number; note: string };
}

/** A node above the leaves. */
interface Node {
  level: number;
  idx: number;
}

/**
 * The log in policy's PostgreSQL database, read in one read-only transaction and without changing anything, so that a role
 * which may only read is enough. Rejects where the URL is invalid, or the database cannot be reached or is not policy's.
 */
export async function openLogDatabase(
  url: string,
): Promise<{ source: LogSource; label: string; close(): Promise<void> }> {
  const address = parsePostgresUrl(url);
  const db = new Kysely<LogTables>({ dialect: postgresDialect(createPostgresPool({ address, size: 1 })) });
  // One snapshot for everything that is read: the service may append and sign meanwhile.
  const trx = await begin(db).catch(async (e: unknown) => {
    await db.destroy();
    throw e;
  });
  const nodes = new Map<string, Uint8Array>();

  const readNodes = async (wanted: readonly (Node & { last?: number })[]): Promise<void> => {
    nodes.clear();
    if (wanted.length === 0) return;
    const rows = await trx
      .selectFrom("nodes")
      .selectAll()
      .where((eb) =>
        eb.or(
          wanted.map(({ level, idx, last = idx }) =>
            eb.and([eb("level", "=", level), eb("idx", ">=", idx), eb("idx", "<=", last)]),
          ),
        ),
      )
      .execute();
    for (const { level, idx, hash } of rows) nodes.set(`${level}/${idx}`, hash);
  };
  const page = (from: number): Promise<StoredEntry[]> =>
    trx
      .selectFrom("records")
      .select(["idx as index", "leaf", "hash"])
      .where("idx", ">", from)
      .orderBy("idx")
      .limit(PAGE)
      .execute();

  const source: LogSource = {
    async *checkpoints() {
      for (let from = -1; ; ) {
        const rows = await trx
          .selectFrom("checkpoints")
          .select(["size", "note"])
          .where("size", ">", from)
          .orderBy("size")
          .limit(PAGE)
          .execute();
        yield* rows;
        if (rows.length < PAGE) return;
        from = rows.at(-1)?.size ?? from;
      }
    },
    async *entries() {
      let end = 0;
      for (let rows = await page(-1); rows.length > 0; rows = await page(end - 1)) {
        const first = rows[0]?.index ?? 0;
        end = (rows.at(-1)?.index ?? first) + 1;
        await readNodes(completedBy(first, end));
        yield* rows;
      }
      await readNodes(edgeBeyond(end));
    },
    // What is asked for next was read with the records that it stands over.
    nodeAt: ({ level, index }) => nodes.get(`${level}/${index}`),
  };
  return {
    source,
    label: address.label,
    async close() {
      await trx.rollback().execute();
      await db.destroy();
    },
  };
}

async function begin(db: Kysely<LogTables>): Promise<ControlledTransaction<LogTables>> {
  const trx = await db.startTransaction().setIsolationLevel("repeatable read").setAccessMode("read only").execute();
  await trx.selectFrom("checkpoints").select("size").limit(1).execute();
  return trx;
}

/** The nodes whose last leaf is one of the records from `first` up to, but without, `end`. */
function completedBy(first: number, end: number): (Node & { last: number })[] {
  return levels()
    .map((level) => ({ level, idx: Math.floor(first / 2 ** level), last: Math.floor(end / 2 ** level) - 1 }))
    .filter(({ idx, last }) => idx <= last);
}

/** On each level the node that only a longer log completes. */
function edgeBeyond(size: number): Node[] {
  return levels().map((level) => ({ level, idx: Math.floor(size / 2 ** level) }));
}

function levels(): number[] {
  return Array.from({ length: TOP_LEVEL }, (_, i) => i + 1);
}
