import { toBinary } from "@bufbuild/protobuf";
import { sql } from "kysely";
import { type AuditRecord, AuditRecordSchema } from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import { leafHash } from "../../../lib/merkle/hash.ts";
import { prepared, type QueryRunner } from "../../../lib/store/prepared.ts";
import { forRows } from "../../../lib/store/rows.ts";
import type { PolicyDatabase } from "../storage/tables.ts";

/**
 * Where the records of one call are found again. "here": the log lists the record under its call. "elsewhere": the caller
 * keeps the index in a row of its own that is found by call id (decisions, outcomes), and saves a write.
 */
export type Listed = "here" | "elsewhere";

export interface AuditLog {
  /**
   * Appends a record inside the caller's transaction and returns its index: the record is in the log if, and only if,
   * that transaction commits. Call it only in jobs of the one group commit, which run one after another.
   */
  append(trx: QueryRunner, record: AuditRecord, listed: Listed): Promise<number>;
  /** The same for many records, at least one, with one statement on PostgreSQL: their indexes, one after another. */
  appendAll(trx: QueryRunner, records: readonly { record: AuditRecord; listed: Listed }[]): Promise<number[]>;
}

interface Leaf {
  leaf: Uint8Array;
  hash: Uint8Array;
  callId: string;
}

/**
 * Appends to the table records. The index is found by the insert itself, so that nothing in memory can disagree with the
 * database after a rollback; the tree above the leaves is built by the checkpoint that signs it.
 *
 * @param onAppend called for each record that was appended; it may still be rolled back.
 */
export function createAuditLog(db: PolicyDatabase, onAppend: () => void): AuditLog {
  const insert = prepared((p: Leaf) => {
    const next = db.selectFrom("records").select(sql<number>`coalesce(max(idx) + 1, 0)`.as("idx"));
    return db
      .insertInto("records")
      .values({ idx: next, leaf: p.leaf, hash: p.hash, call_id: p.callId })
      .returning("idx");
  });
  const list = prepared((p: { callId: string; index: number }) =>
    db.insertInto("call_records").values({ call_id: p.callId, idx: p.index }),
  );
  // One snapshot for all: the index is found once, and the group commit's lock keeps others from appending meanwhile.
  const insertAll = forRows<Leaf & { listed: number }, { idx: number }>(
    db,
    { leaf: "bytea", hash: "bytea", callId: "text", listed: "integer" },
    (given) => sql`
      with batch as materialized (
        select (select coalesce(max(idx), -1) from records) + given.ord as idx, given.* from ${given}
      ), listing as (insert into call_records (call_id, idx) select "callId", idx from batch where listed = 1)
      insert into records (idx, leaf, hash, call_id) select idx, leaf, hash, "callId" from batch order by ord
      returning idx`,
  );
  return {
    async appendAll(trx, records) {
      const leaves = records.map(({ record, listed }) => {
        const leaf = toBinary(AuditRecordSchema, record);
        const isListed = listed === "here" && record.callId !== "";
        return { leaf, hash: leafHash(leaf), callId: record.callId, listed: isListed ? 1 : 0 };
      });
      const rows = await insertAll(trx, leaves);
      if (rows.length !== records.length) throw new Error("the records were not inserted");
      onAppend();
      return rows.map(({ idx }) => idx).sort((a, b) => a - b);
    },
    async append(trx, record, listed) {
      const { callId } = record;
      const leaf = toBinary(AuditRecordSchema, record);
      const row = await insert.first(trx, { leaf, hash: leafHash(leaf), callId });
      if (!row) throw new Error("the record was not inserted");
      if (listed === "here" && callId !== "") await list.run(trx, { callId, index: row.idx });
      onAppend();
      return row.idx;
    },
  };
}
