import { create, fromBinary } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type Approval,
  ApprovalSchema,
  type ApprovalSpec,
  ApprovalSpecSchema,
  ApprovalState,
  ApprovalStatusSchema,
} from "../../../gen/ts/reeve/approval/v1/approval_pb.ts";
import { type CallApproval, CallApprovalSchema } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import type { ApprovalRow } from "./approval-store.ts";

/** A stored approval as its message. */
export function approvalOf(row: ApprovalRow): Approval {
  const status = create(ApprovalStatusSchema, {
    state: row.state as ApprovalState,
    decidedBy: row.decided_by,
    decidedByName: row.decided_by_name,
    channel: row.channel,
    comment: row.comment,
    ...(row.decide_ms !== null && { decideTime: timestampFromMs(row.decide_ms) }),
  });
  return create(ApprovalSchema, {
    id: row.id,
    spec: specOf(row),
    status,
    createTime: timestampFromMs(row.create_ms),
    expireTime: timestampFromMs(row.expire_ms),
  });
}

/** A stored approval as the calls that it is for show it. */
export function callApprovalOf(row: ApprovalRow): CallApproval {
  return create(CallApprovalSchema, {
    id: row.id,
    decidedBy: row.decided_by,
    decidedByName: row.decided_by_name,
    ...(row.decide_ms !== null && { decideTime: timestampFromMs(row.decide_ms) }),
  });
}

/** What a stored approval asks. */
export function specOf(row: ApprovalRow): ApprovalSpec {
  return fromBinary(ApprovalSpecSchema, row.spec);
}

const STATE_NAMES: Readonly<Record<number, string>> = {
  [ApprovalState.PENDING]: "pending",
  [ApprovalState.APPROVED]: "approved",
  [ApprovalState.DENIED]: "denied",
  [ApprovalState.EXPIRED]: "expired",
  [ApprovalState.CANCELED]: "canceled",
};

/** The word for a state, as the log and error metadata use it. */
export function stateName(state: number): string {
  return STATE_NAMES[state] ?? "unknown";
}
