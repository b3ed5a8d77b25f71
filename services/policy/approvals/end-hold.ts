import { fromBinary } from "@bufbuild/protobuf";
import type { Outcome } from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import { DecisionSchema } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import type { QueryRunner } from "../../../lib/store/prepared.ts";
import type { DecisionStore } from "../decide/decision-store.ts";
import type { ApprovalChanges } from "./changes.ts";
import type { ApprovalSettler } from "./settle.ts";

/** What ending holds needs. */
export interface HoldEnderOptions {
  decisions: Pick<DecisionStore, "find">;
  settler: Pick<ApprovalSettler, "withdraw">;
  changes: ApprovalChanges;
}

/**
 * Ends the pending approval of a call that has ended, as when its caller cancelled it: approved later it would say that
 * something runs. Works inside the outcome's transaction; the result tells those who wait, after the commit.
 */
export function createHoldEnder({ decisions, settler, changes }: HoldEnderOptions) {
  return async (trx: QueryRunner, outcome: Outcome): Promise<() => void> => {
    // With a grant it was permitted, so that nothing is pending; most calls save the look.
    if (outcome.grantId !== "") return nothing;
    const row = await decisions.find(trx, outcome.callId);
    const decided = row && fromBinary(DecisionSchema, row.decision).outcome;
    if (decided?.case !== "hold") return nothing;
    const comment = `the call ended: ${outcome.state}`;
    const approval = await settler.withdraw(trx, decided.value.approvalId, comment);
    return approval ? () => changes.publish(approval) : nothing;
  };
}

function nothing(): void {}
