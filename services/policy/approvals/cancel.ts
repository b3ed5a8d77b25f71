import { fromBinary } from "@bufbuild/protobuf";
import type { CallOutcome } from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import { DecisionKind } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { DecisionSchema } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { decodeRecord } from "../../../lib/audit-verify/log-source.ts";
import { prepared, type QueryRunner } from "../../../lib/store/prepared.ts";
import { endState } from "../audit/outcome-store.ts";
import type { DecisionStore } from "../decisions/decision-store.ts";
import type { PolicyDatabase } from "../storage/tables.ts";
import type { ChangeFeed } from "./change-feed.ts";
import type { HeldRequests } from "./held-requests.ts";
import type { ApprovalResolver } from "./resolve.ts";

export interface CancelerOptions {
  db: PolicyDatabase;
  decisions: Pick<DecisionStore, "find">;
  resolver: Pick<ApprovalResolver, "cancel">;
  requests: Pick<HeldRequests, "deleteCall">;
  changes: Pick<ChangeFeed, "wake">;
}

/**
 * Cancels the pending approval of a call that has ended, as when its caller canceled it: approved later it would say that
 * something runs. What was asked about it is deleted. Works inside the outcome's transaction; the result wakes those who
 * wait, after the commit.
 */
export function createApprovalCanceler({ db, decisions, resolver, requests, changes }: CancelerOptions) {
  const pendingApproval = pendingApprovals(db, decisions);
  return async (trx: QueryRunner, outcome: CallOutcome): Promise<() => void> => {
    await requests.deleteCall(trx, outcome.callId);
    // With a grant it was permitted, so that nothing is pending; most calls save the look.
    if (outcome.grantId !== "") return nothing;
    const approvalId = await pendingApproval(trx, outcome.callId);
    if (approvalId === undefined) return nothing;
    const approval = await resolver.cancel(trx, approvalId, `the call ended: ${endState(outcome.state)}`);
    return approval ? changes.wake : nothing;
  };
}

/**
 * The approval that a call waits for by its newest decision; undefined where that is no hold. Looks at the decisions that
 * were taken when the call was asked about again, then at its first.
 */
function pendingApprovals(db: PolicyDatabase, decisions: Pick<DecisionStore, "find">) {
  const later = prepared((p: { callId: string }) =>
    db.selectFrom("call_records").select("idx").where("call_id", "=", p.callId).orderBy("idx", "desc"),
  );
  const leafAt = prepared((p: { idx: number }) => db.selectFrom("records").select("leaf").where("idx", "=", p.idx));

  return async (on: QueryRunner, callId: string): Promise<string | undefined> => {
    for (const { idx } of await later.all(on, { callId })) {
      const leaf = (await leafAt.first(on, { idx }))?.leaf;
      const event = leaf && decodeRecord(leaf)?.event;
      // A look before the hold decides nothing.
      if (event?.case === "decided" && event.value.decision !== DecisionKind.PREVIEW)
        return event.value.decision === DecisionKind.HOLD ? event.value.approvalId : undefined;
    }
    const first = await decisions.find(on, callId);
    const decided = first && fromBinary(DecisionSchema, first.decision).outcome;
    return decided?.case === "hold" ? decided.value.approvalId : undefined;
  };
}

function nothing(): void {}
