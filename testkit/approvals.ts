import { type Approval, ApprovalState } from "../gen/ts/reeve/approval/v1/approval_pb.ts";
import type { Caller } from "./clients.ts";

/** The pending approval of a call, as soon as there is one: of its stored id, or of the id that an agent chose for it. */
export async function pendingApproval({ approvals }: Caller, callId: string): Promise<Approval> {
  const watch = new AbortController();
  try {
    for await (const { approval } of approvals.watchApprovals({}, { signal: watch.signal })) {
      const stored = approval?.spec?.callId ?? "";
      const isOfCall = stored === callId || stored.startsWith(`${callId}-`);
      if (isOfCall && approval?.status?.state === ApprovalState.PENDING) return approval;
    }
  } finally {
    watch.abort();
  }
  throw new Error(`the watch ended before the call ${callId} was held`);
}

/** Says yes to a call that is held, or will be. */
export async function approveCall(caller: Caller, callId: string): Promise<Approval> {
  const { id: approvalId, spec } = await pendingApproval(caller, callId);
  const { approval } = await caller.approvals.approve({
    approvalId,
    summaryDigest: spec?.summaryDigest ?? "",
    channel: "test",
  });
  if (approval === undefined) throw new Error("no approval came back");
  return approval;
}
