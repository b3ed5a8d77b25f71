import { fromBinary } from "@bufbuild/protobuf";
import { DecisionSchema } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { decodeRecord } from "../../../lib/audit-verify/log-source.ts";
import { prepared, type QueryRunner } from "../../../lib/store/prepared.ts";
import type { DecisionStore } from "../decide/decision-store.ts";
import type { PolicyDatabase } from "../tables.ts";

/** The approval that a call waits for by its newest decision; undefined where that is no hold. */
export type NewestHold = (on: QueryRunner, callId: string) => Promise<string | undefined>;

/** Looks at the decisions that were taken when the call was asked about again, then at its first. */
export function createNewestHold(db: PolicyDatabase, decisions: Pick<DecisionStore, "find">): NewestHold {
  const later = prepared((p: { callId: string }) =>
    db.selectFrom("call_records").select("idx").where("call_id", "=", p.callId).orderBy("idx", "desc"),
  );
  const leafAt = prepared((p: { idx: number }) => db.selectFrom("records").select("leaf").where("idx", "=", p.idx));

  return async (on, callId) => {
    for (const { idx } of await later.all(on, { callId })) {
      const leaf = (await leafAt.first(on, { idx }))?.leaf;
      const event = leaf && decodeRecord(leaf)?.event;
      if (event?.case === "decided") return event.value.decision === "hold" ? event.value.approvalId : undefined;
    }
    const first = await decisions.find(on, callId);
    const decided = first && fromBinary(DecisionSchema, first.decision).outcome;
    return decided?.case === "hold" ? decided.value.approvalId : undefined;
  };
}
