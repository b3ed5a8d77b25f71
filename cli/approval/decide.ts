import type { Approval } from "../../gen/ts/reeve/approval/v1/approval_pb.ts";
import { type ApprovalFullText, ApprovalView } from "../../gen/ts/reeve/approval/v1/approval_service_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../lib/fault/fault.ts";
import type { Session } from "../session.ts";

/** From where the terminal's decisions come, for the record. */
const CHANNEL = "cli";

/** Reads an approval. Throws NOT_FOUND. */
export async function readApproval(session: Session, approvalId: string): Promise<Approval> {
  const { approval } = await session.approvals.getApproval({ approvalId });
  if (approval?.spec !== undefined) return approval;
  throw fault(ErrorReason.NOT_FOUND, { resource: `approvals/${approvalId}` }, { message: `no approval ${approvalId}` });
}

/** Everything that would run, for an approval that is pending. Undefined where it is not, or cannot be shown any more. */
export async function readFullText(session: Session, approvalId: string): Promise<ApprovalFullText | undefined> {
  return (await session.approvals.getApproval({ approvalId, view: ApprovalView.FULL })).fullText;
}

/** What a decider says yes to. */
export interface Shown {
  approval: Approval;
  /** All that would run, where it was shown. An abridged summary can only be approved with it. */
  fullText?: ApprovalFullText | undefined;
  /** For the record. Default none. */
  comment?: string | undefined;
}

/**
 * Says yes to what was shown, as an operator: the digests of the summary and of the full text go along, and policy
 * refuses others. Throws
 * INVALID_INPUT where the summary is abridged and the full text was not shown, APPROVAL_DECIDED, APPROVAL_EXPIRED and FOUR_EYES.
 */
export async function approve(session: Session, { approval: shown, fullText, comment = "" }: Shown): Promise<Approval> {
  const summaryDigest = shown.spec?.summaryDigest ?? "";
  const { approvals } = await session.operator.open();
  const { approval } = await approvals.approve({
    approvalId: shown.id,
    summaryDigest,
    fullTextDigest: fullText?.digest ?? "",
    comment,
    channel: CHANNEL,
  });
  return approval ?? shown;
}

/** Says no, as an operator. Throws APPROVAL_DECIDED and APPROVAL_EXPIRED. */
export async function deny(session: Session, approvalId: string, comment = ""): Promise<Approval | undefined> {
  const { approvals } = await session.operator.open();
  const { approval } = await approvals.deny({ approvalId, comment, channel: CHANNEL });
  return approval;
}
