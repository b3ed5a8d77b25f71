import { toBinary } from "@bufbuild/protobuf";
import { sql } from "kysely";
import { type AuditRecord, AuditRecordSchema } from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import { leafHash } from "../../../lib/merkle/hash.ts";
import { prepared, type QueryRunner } from "../../../lib/store/prepared.ts";
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
  return {
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
