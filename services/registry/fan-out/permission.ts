import { create } from "@bufbuild/protobuf";
import { type ErrorDetail, ErrorDetailSchema, ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { Decision, DecisionRequest, Hold } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import type { PolicyLink } from "../policy/policy-link.ts";

/** What became of the question about the whole. */
export type Permission =
  /** The calls may be asked for. The approval is empty where none was needed. */
  { kind: "permitted"; approvalId: string } | { kind: "refused"; error: ErrorDetail; message: string };

/** What asking for it needs. */
export interface PermissionOptions {
  policy: Pick<PolicyLink, "authorize" | "awaitApproval">;
  /** How long to wait for a human, in milliseconds. */
  waitMs: number;
  /** Ends the wait: whoever asked has left. */
  signal: AbortSignal;
}

/**
 * Asks policy about the whole, and where it is held waits for the human who decides. Yields the hold; the result is what
 * came of it. Throws POLICY_UNAVAILABLE, and the signal's reason when it aborts.
 */
export async function* askForWhole(
  question: DecisionRequest,
  { policy, waitMs, signal }: PermissionOptions,
): AsyncGenerator<Hold, Permission> {
  const decision = await policy.authorize(question);
  if (decision.outcome.case !== "hold") return permissionOf(decision, "");
  const hold = decision.outcome.value;
  yield hold;
  const tooLong = AbortSignal.timeout(waitMs);
  try {
    const settled = await policy.awaitApproval(hold.approvalId, AbortSignal.any([signal, tooLong]));
    return permissionOf(settled, hold.approvalId);
  } catch (error: unknown) {
    signal.throwIfAborted();
    if (tooLong.aborted) return stillHeld(question.callId, hold.approvalId);
    throw error;
  }
}

function permissionOf({ outcome }: Decision, approvalId: string): Permission {
  if (outcome.case === "permit") return { kind: "permitted", approvalId };
  if (outcome.case !== "denial") {
    return refused(ErrorReason.POLICY_UNAVAILABLE, {}, "policy sent no decision");
  }
  const { reason, userMessage, approvalId: refusedBy, metadata } = outcome.value;
  return refused(reason, { ...metadata, ...(refusedBy === "" ? {} : { approval_id: refusedBy }) }, userMessage);
}

function stillHeld(fanOutId: string, approvalId: string): Permission {
  const metadata = { approval_id: approvalId, call_id: fanOutId };
  const message = `it is held; once ${approvalId} is approved, try again with the id ${fanOutId}`;
  return refused(ErrorReason.APPROVAL_REQUIRED, metadata, message);
}

function refused(reason: ErrorReason, metadata: Record<string, string>, message: string): Permission {
  return { kind: "refused", error: create(ErrorDetailSchema, { reason, metadata }), message };
}
