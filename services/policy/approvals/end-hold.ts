import type { CallOutcome } from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import type { QueryRunner } from "../../../lib/store/prepared.ts";
import type { ApprovalChanges } from "./changes.ts";
import type { NewestHold } from "./newest-hold.ts";
import type { RequestStore } from "./request-store.ts";
import type { ApprovalSettler } from "./settle.ts";

/** What ending holds needs. */
export interface HoldEnderOptions {
  newestHold: NewestHold;
  settler: Pick<ApprovalSettler, "withdraw">;
  requests: Pick<RequestStore, "forgetCall">;
  changes: Pick<ApprovalChanges, "look">;
}

/**
 * Ends the pending approval of a call that has ended, as when its caller canceled it: approved later it would say that
 * something runs. What was asked about it is forgotten. Works inside the outcome's transaction; the result tells those who wait, after the commit.
 */
export function createHoldEnder({ newestHold, settler, requests, changes }: HoldEnderOptions) {
  return async (trx: QueryRunner, outcome: CallOutcome): Promise<() => void> => {
    await requests.forgetCall(trx, outcome.callId);
    // With a grant it was permitted, so that nothing is pending; most calls save the look.
    if (outcome.grantId !== "") return nothing;
    const approvalId = await newestHold(trx, outcome.callId);
    if (approvalId === undefined) return nothing;
    const approval = await settler.withdraw(trx, approvalId, `the call ended: ${outcome.state}`);
    return approval ? changes.look : nothing;
  };
}

function nothing(): void {}
