import { create } from "@bufbuild/protobuf";
import { type LogEntry, LogEntrySchema } from "../../../gen/ts/reeve/audit/v1/audit_service_pb.ts";
import { decodeRecord } from "../../../lib/audit-verify/log-source.ts";
import { readPageToken, writePageToken } from "../../../lib/pages/page-token.ts";
import { prepared } from "../../../lib/store/prepared.ts";
import type { PolicyDatabase } from "../storage/tables.ts";

/** Some records, and where the next page starts; empty on the last page. */
export interface EntryPage {
  entries: LogEntry[];
  nextPageToken: string;
}

export interface ListRequest {
  /** Empty: of any call and of none. */
  callId: string;
  /** 0 for the default. */
  pageSize: number;
  pageToken: string;
  /** Default false: oldest first. */
  newestFirst?: boolean;
}

/** Reads records of the log, committed ones only. */
export interface LogReader {
  /** The record at an index; undefined where there is none. */
  entry(index: number): Promise<LogEntry | undefined>;
  /**
   * Records from the oldest, or from the newest; all, or those about one call. Throws INVALID_INPUT for a page token that is
   * none.
   */
  list(request: ListRequest): Promise<EntryPage>;
}

const DEFAULT_PAGE_SIZE = 100;

/** Reads from the table records. */
export function createLogReader(db: PolicyDatabase): LogReader {
  const byIndex = prepared((p: { index: number }) =>
    db.selectFrom("records").select(["idx", "leaf"]).where("idx", "=", p.index),
  );
  const page = prepared((p: { from: number; limit: number }) =>
    db.selectFrom("records").select(["idx", "leaf"]).where("idx", ">=", p.from).orderBy("idx").limit(p.limit),
  );
  const pageBack = prepared((p: { from: number; limit: number }) =>
    db.selectFrom("records").select(["idx", "leaf"]).where("idx", "<=", p.from).orderBy("idx", "desc").limit(p.limit),
  );
  const indexesOfCall = prepared((p: { callId: string }) =>
    db
      .selectFrom("decisions")
      .select("idx")
      .where("call_id", "=", p.callId)
      .unionAll(db.selectFrom("call_records").select("idx").where("call_id", "=", p.callId))
      .unionAll(db.selectFrom("outcomes").select("idx").where("call_id", "=", p.callId)),
  );
  // A call has a handful of records, found by the rows that they were written with.
  const ofCall = async (callId: string, { from, limit, newestFirst }: Stretch): Promise<StoredLeaf[]> => {
    const found = (await indexesOfCall.all(db, { callId })).map((row) => row.idx).sort((a, b) => a - b);
    const indexes = newestFirst ? found.filter((idx) => idx <= from).reverse() : found.filter((idx) => idx >= from);
    const rows: StoredLeaf[] = [];
    for (const index of indexes.slice(0, limit)) rows.push(...(await byIndex.all(db, { index })));
    return rows;
  };
  return {
    async entry(index) {
      const row = await byIndex.first(db, { index });
      return row && entryOf(row);
    },
    async list({ callId, pageSize, pageToken, newestFirst = false }) {
      const size = pageSize === 0 ? DEFAULT_PAGE_SIZE : pageSize;
      const from = readPageToken(pageToken) ?? (newestFirst ? Number.MAX_SAFE_INTEGER : 0);
      const stretch = { from, limit: size + 1, newestFirst };
      const rows =
        callId === "" ? await (newestFirst ? pageBack : page).all(db, stretch) : await ofCall(callId, stretch);
      const next = rows[size];
      return { entries: rows.slice(0, size).map(entryOf), nextPageToken: next ? writePageToken(next.idx) : "" };
    },
  };
}

interface Stretch {
  from: number;
  limit: number;
  newestFirst: boolean;
}

interface StoredLeaf {
  idx: number;
  leaf: Uint8Array;
}

function entryOf({ idx, leaf }: StoredLeaf): LogEntry {
  const record = decodeRecord(leaf);
  return create(LogEntrySchema, { index: BigInt(idx), leaf, ...(record && { record }) });
}
