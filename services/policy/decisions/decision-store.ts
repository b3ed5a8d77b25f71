import { sql } from "kysely";
import type { DecisionRequest } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { sha256Hex } from "../../../lib/sign/canonical.ts";
import { prepared, type QueryRunner } from "../../../lib/store/prepared.ts";
import { forRows } from "../../../lib/store/rows.ts";
import type { ValidatedRequest } from "../facts/decision-request.ts";
import type { PolicyDatabase, PolicyTables } from "../storage/tables.ts";

/** What was decided about a call. */
export type DecisionRow = PolicyTables["decisions"];

/** The decisions of policy's database, by `decisionKey`. */
export interface DecisionStore {
  find(on: QueryRunner, key: string): Promise<DecisionRow | undefined>;
  /**
   * False, and nothing is inserted, where there is a decision under that key already, or where the call has ended.
   *
   * @param callId the call's own id: the row's may hold the number of a delivery as well.
   */
  insert(on: QueryRunner, row: DecisionRow, callId: string): Promise<boolean>;
  /** On PostgreSQL, of many the places of those that `insert` would not insert. */
  refused(on: QueryRunner, asked: readonly { key: string; callId: string }[]): Promise<Set<number>>;
  /** On PostgreSQL, inserts many that `refused` has not named. */
  insertAll(on: QueryRunner, rows: readonly DecisionRow[]): Promise<void>;
}

/** The table decisions. */
export function createDecisionStore(db: PolicyDatabase): DecisionStore {
  const find = prepared((p: { key: string }) => db.selectFrom("decisions").selectAll().where("call_id", "=", p.key));
  const insert = prepared((p: DecisionRow & { ended: string }) =>
    db
      .insertInto("decisions")
      .columns(["call_id", "digest", "decision", "idx"])
      .expression(
        db
          .selectNoFrom(({ val }) => [
            val(p.call_id).as("call_id"),
            val(p.digest).as("digest"),
            val(p.decision).as("decision"),
            val(p.idx).as("idx"),
          ])
          .where(({ exists, not, selectFrom }) =>
            not(exists(selectFrom("outcomes").select("idx").where("call_id", "=", p.ended))),
          ),
      )
      .onConflict((conflict) => conflict.column("call_id").doNothing()),
  );
  const refused = forRows<{ key: string; callId: string }, { ord: number }>(
    db,
    { key: "text", callId: "text" },
    (given) => sql`
      select given.ord from ${given}
      where exists (select from decisions where call_id = given.key)
        or exists (select from outcomes where call_id = given."callId")`,
  );
  const insertAll = forRows<DecisionRow, never>(
    db,
    { call_id: "text", digest: "text", decision: "bytea", idx: "bigint" },
    (given) => sql`
      insert into decisions (call_id, digest, decision, idx) select call_id, digest, decision, idx from ${given}`,
  );
  return {
    refused: async (on, asked) => new Set((await refused(on, asked)).map(({ ord }) => ord - 1)),
    insertAll: async (on, rows) => void (await insertAll(on, rows)),
    find: (on, key) => find.first(on, { key }),
    insert: async (on, row, callId) => (await insert.run(on, { ...row, ended: callId })) === 1,
  };
}

/** The call's id, and for a queued call that is asked about again the number of the delivery. No call id holds a "#". */
export function decisionKey({ callId, delivery }: Pick<DecisionRequest, "callId" | "delivery">): string {
  return delivery === 0 ? callId : `${callId}#${delivery}`;
}

/**
 * SHA-256, in hex, of what makes two requests with one call id the same: principal, tool, device or devices, arguments,
 * longest run, purpose, ingress, delivery and approval. Other facts, such as the time, roles or the device's manifest, may
 * have changed since: the decision stays as it was.
 */
export function requestDigest({ request, principal, device, tool, argsDigest, timeoutMs }: ValidatedRequest): string {
  const { purpose, ingress, delivery, approvalId } = request;
  const devices = request.devices.map(({ id }) => id);
  const asked = [principal.id, device.id, tool.name, argsDigest, timeoutMs, purpose, ingress];
  return sha256Hex(JSON.stringify([...asked, delivery, approvalId, devices]));
}
