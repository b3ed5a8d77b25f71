import { existsSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { fromBinary } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import type { AuditService } from "../../gen/ts/reeve/audit/v1/audit_service_pb.ts";
import { type AuditRecord, AuditRecordSchema } from "../../gen/ts/reeve/audit/v1/record_pb.ts";
import type { NodeId } from "../merkle/plan.ts";
import { openSqlite, type SqliteHandle } from "../store/sqlite-handle.ts";

/** A log to be verified, wherever it is kept. Nothing in it is trusted. */
export interface LogSource {
  /** The checkpoints that are kept, smallest size first. Asked for before the entries: a log only grows. */
  checkpoints(): AsyncIterable<StoredCheckpoint>;
  /** The records, by index. */
  entries(): AsyncIterable<StoredEntry>;
  /** The stored hash of a node above the leaves; left out where nodes are not kept. */
  nodeAt?(id: NodeId): Uint8Array | undefined;
}

/** A record as it is kept. */
export interface StoredEntry {
  index: number;
  leaf: Uint8Array;
  /** The leaf hash that is kept beside it; left out where none is. */
  hash?: Uint8Array;
}

export interface StoredCheckpoint {
  /** The size that it is filed under. */
  size: number;
  note: string;
}

/** Records that are fetched at a time. */
const PAGE = 500;

/**
 * The log in policy's database file, opened read-only: the service may be running, stopped, or long gone. Throws node's
 * own error where the file cannot be opened or is no database of policy's.
 */
export function openLogFile(path: string): LogSource & { close(): void } {
  const db = openReadOnly(path);
  const page = (sql: string, parameters: readonly unknown[]) => db.run(sql, parameters).rows;
  return {
    async *checkpoints() {
      for (let from = -1; ; ) {
        const sql = "select size, note from checkpoints where size > ? order by size limit ?";
        const rows = page(sql, [from, PAGE]) as unknown as StoredCheckpoint[];
        yield* rows;
        if (rows.length < PAGE) return;
        from = rows.at(-1)?.size ?? from;
      }
    },
    async *entries() {
      for (let from = -1; ; ) {
        const sql = 'select idx as "index", leaf, hash from records where idx > ? order by idx limit ?';
        const rows = page(sql, [from, PAGE]) as unknown as StoredEntry[];
        yield* rows;
        if (rows.length < PAGE) return;
        from = rows.at(-1)?.index ?? from;
      }
    },
    nodeAt({ level, index }) {
      const [row] = page("select hash from nodes where level = ? and idx = ?", [level, index]);
      return row?.hash as Uint8Array | undefined;
    },
    close: () => db.close(),
  };
}

function openReadOnly(path: string): SqliteHandle {
  const { href } = pathToFileURL(path);
  try {
    return opened(`${href}?mode=ro`);
  } catch (e: unknown) {
    // A reader of a write-ahead log needs a file beside it, which a read-only folder cannot take. Without a log nothing
    // is missed by reading the database alone.
    if (!existsSync(path) || existsSync(`${path}-wal`)) throw e;
    return opened(`${href}?immutable=1`);
  }
}

function opened(uri: string): SqliteHandle {
  const db = openSqlite(uri);
  // One snapshot for everything that is read: the service may append and sign meanwhile.
  db.exec("begin");
  db.run("select count(*) from checkpoints", []);
  return db;
}

/** The log of a running service, as it reports it: its newest checkpoint and every record. */
export function rpcLogSource(client: Client<typeof AuditService>): LogSource {
  return {
    async *checkpoints() {
      const { checkpoint } = await client.getCheckpoint({});
      if (checkpoint) yield { size: Number(checkpoint.size), note: checkpoint.note };
    },
    async *entries() {
      let pageToken = "";
      do {
        const page = await client.listRecords({ pageSize: PAGE, pageToken });
        for (const { index, leaf } of page.entries) yield { index: Number(index), leaf };
        pageToken = page.nextPageToken;
      } while (pageToken !== "");
    },
  };
}

/** The record in a leaf; undefined where the bytes are damaged: one bad row must not hide the others. */
export function decodeRecord(leaf: Uint8Array): AuditRecord | undefined {
  try {
    return fromBinary(AuditRecordSchema, leaf);
  } catch {
    return undefined;
  }
}
