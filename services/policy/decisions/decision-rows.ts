import { toBinary } from "@bufbuild/protobuf";
import type { AuditRecord } from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import { type Decision, DecisionSchema } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import type { RowKind } from "../../../lib/store/rows.ts";
import type { AuditLog, Listed } from "../audit/log.ts";
import { RollBack } from "../storage/recorded-writes.ts";
import type { PolicyTables } from "../storage/tables.ts";
import { type DecisionHead, decisionOf, type Outcome } from "./decision.ts";
import type { DecisionStore } from "./decision-store.ts";

/** A decision that is written with its record and nothing else, which a hold is not. */
export interface DecidedRow {
  /** The call's own id: the key may hold the number of a delivery as well. */
  callId: string;
  key: string;
  digest: string;
  record: AuditRecord;
  listed: Listed;
  head: DecisionHead;
  outcome: Outcome;
}

/** The decision as written; undefined, where several are written at once, for one that there is already, or whose call ended. */
export type DecisionRows = RowKind<PolicyTables, DecidedRow, Decision | undefined>;

/** A record and a decision with its grant at most, about. */
const BYTES = 8 * 1024;

/** Decisions with their records. Alone, one that there is already throws RollBack. */
export function decisionRows(log: AuditLog, decisions: DecisionStore): DecisionRows {
  return {
    key: ({ callId }) => callId,
    bytes: () => BYTES,
    async one(trx, row) {
      const { decision, stored } = decidedAt(row, await log.append(trx, row.record, row.listed));
      if (!(await decisions.insert(trx, stored, row.callId))) throw new RollBack("decided before, or ended");
      return decision;
    },
    async many(trx, rows) {
      const refused = await decisions.refused(
        trx,
        rows.map(({ key, callId }) => ({ key, callId })),
      );
      const fresh = rows.filter((_, at) => !refused.has(at));
      if (fresh.length === 0) return rows.map(() => undefined);
      const indexes = await log.appendAll(trx, fresh);
      const decided = new Map(fresh.map((row, at) => [row, decidedAt(row, indexes[at] ?? Number.NaN)]));
      await decisions.insertAll(
        trx,
        [...decided.values()].map(({ stored }) => stored),
      );
      return rows.map((row) => decided.get(row)?.decision);
    },
  };
}

function decidedAt({ key, digest, head, outcome }: DecidedRow, idx: number) {
  const decision = decisionOf(head, idx, outcome);
  return { decision, stored: { call_id: key, digest, decision: toBinary(DecisionSchema, decision), idx } };
}
