import { create } from "@bufbuild/protobuf";
import {
  ApprovalRequestedSchema,
  ApprovalResolvedSchema,
} from "../../../gen/ts/reeve/approval/v1/approval_events_pb.ts";
import type { ApprovalSpec, ApprovalState } from "../../../gen/ts/reeve/approval/v1/approval_pb.ts";
import type { EventEnvelope } from "../../../gen/ts/reeve/event/v1/envelope_pb.ts";
import { envelopeOf } from "../../../lib/events/envelope.ts";

/** What events say of the held call. */
type HeldCall = Pick<ApprovalSpec, "callId" | "deviceId" | "tool" | "principalId">;

/** A call was held: reeve.approval.v1.approval_requested.<approval>. Published once for each approval. */
export function approvalRequested(approvalId: string, call: HeldCall, nowMs: number): EventEnvelope {
  const { callId, deviceId, tool, principalId } = call;
  const message = create(ApprovalRequestedSchema, { approvalId, callId, deviceId, tool, principalId });
  const head = { id: `${approvalId}-requested`, time: new Date(nowMs), actor: principalId, key: approvalId };
  return envelopeOf(ApprovalRequestedSchema, message, head);
}

/** A held call was decided, or expired: reeve.approval.v1.approval_resolved.<approval>. Published once for each approval. */
export function approvalResolved(settled: {
  approvalId: string;
  callId: string;
  state: ApprovalState;
  /** Empty where it expired. */
  decidedBy: string;
  nowMs: number;
}): EventEnvelope {
  const { approvalId, callId, state, decidedBy, nowMs } = settled;
  const message = create(ApprovalResolvedSchema, { approvalId, callId, state, decidedBy });
  const actor = decidedBy === "" ? "policy" : decidedBy;
  return envelopeOf(ApprovalResolvedSchema, message, {
    id: `${approvalId}-settled`,
    time: new Date(nowMs),
    actor,
    key: approvalId,
  });
}
