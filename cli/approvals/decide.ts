import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { type Approval, ApprovalState } from "../../gen/ts/reeve/policy/v1/approval_pb.ts";
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

/**
 * Says yes to what was shown: the digest of the card that the approval held then goes along, and policy refuses another.
 * Throws APPROVAL_DECIDED, APPROVAL_EXPIRED and FOUR_EYES.
 */
export async function approve(session: Session, shown: Approval, comment = ""): Promise<Approval> {
  const cardDigest = shown.spec?.cardDigest ?? "";
  const { approval } = await session.approvals.approve({ approvalId: shown.id, cardDigest, comment, channel: CHANNEL });
  return approval ?? shown;
}

/** Says no. Throws APPROVAL_DECIDED and APPROVAL_EXPIRED. */
export async function deny(session: Session, approvalId: string, comment = ""): Promise<Approval | undefined> {
  const { approval } = await session.approvals.deny({ approvalId, comment, channel: CHANNEL });
  return approval;
}

/** Whether nobody has decided yet. */
export function isPending(approval: Approval): boolean {
  return approval.status?.state === ApprovalState.PENDING;
}
