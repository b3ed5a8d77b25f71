import { ConnectError } from "@connectrpc/connect";
import {
  type ErrorDetail,
  ErrorDetailSchema,
  ErrorReason,
  ErrorReasonSchema,
} from "../gen/ts/reeve/common/v1/error_pb.ts";

/** An error of Reeve, as far as a caller can act on it. */
export interface ReeveError {
  /** Why: what to branch on. UNSPECIFIED for an error that is not one of Reeve's, such as a broken connection. */
  reason: ErrorReason;
  /** The reason's short name, such as "policy_denied". */
  name: string;
  /** For a person or a model. */
  message: string;
  /** What the reason's comment in error.proto names, by key. */
  metadata: Readonly<Record<string, string>>;
  /** What broke the schema, a field each. */
  violations: readonly { field: string; message: string }[];
}

/** What is known of an error that a call rejected with. */
export function errorOf(error: unknown): ReeveError {
  const connect = ConnectError.from(error);
  const [detail] = connect.findDetails(ErrorDetailSchema) as (ErrorDetail | undefined)[];
  const reason = detail?.reason ?? ErrorReason.UNSPECIFIED;
  const name = ErrorReasonSchema.value[reason]?.name ?? "ERROR_REASON_UNSPECIFIED";
  return {
    reason,
    name: name.replace("ERROR_REASON_", "").toLowerCase(),
    message: connect.rawMessage,
    metadata: { ...detail?.metadata },
    violations: (detail?.violations ?? []).map(({ field, message }) => ({ field, message })),
  };
}

/** Why a call failed. UNSPECIFIED for an error that is not one of Reeve's. */
export function reasonOf(error: unknown): ErrorReason {
  return errorOf(error).reason;
}

/** A call that a human has to approve. */
export interface ApprovalNeeded {
  approvalId: string;
  /** Asking again with this call id returns the call's end once it was approved. */
  callId: string;
}

/** The approval that a call waits for; undefined where the error says something else. */
export function approvalOf(error: unknown): ApprovalNeeded | undefined {
  const { reason, metadata } = errorOf(error);
  if (reason !== ErrorReason.APPROVAL_REQUIRED) return undefined;
  return { approvalId: metadata.approval_id ?? "", callId: metadata.call_id ?? "" };
}
