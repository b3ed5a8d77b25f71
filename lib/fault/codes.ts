import { Code } from "@connectrpc/connect";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";

/** The one table from reason to Connect code. error.proto repeats each beside its reason. */
const CODES: Record<Exclude<ErrorReason, { readonly __unknown: never }>, Code> = {
  [ErrorReason.UNSPECIFIED]: Code.Internal,
  [ErrorReason.INVALID_INPUT]: Code.InvalidArgument,
  [ErrorReason.INPUT_TOO_LARGE]: Code.InvalidArgument,
  [ErrorReason.UNKNOWN_TOOL]: Code.NotFound,
  [ErrorReason.UNKNOWN_DEVICE]: Code.NotFound,
  [ErrorReason.NOT_FOUND]: Code.NotFound,
  [ErrorReason.DEVICE_REQUIRED]: Code.InvalidArgument,
  [ErrorReason.UNAUTHENTICATED]: Code.Unauthenticated,
  [ErrorReason.ROLE_REQUIRED]: Code.PermissionDenied,
  [ErrorReason.POLICY_DENIED]: Code.PermissionDenied,
  [ErrorReason.POLICY_BLOCKED]: Code.PermissionDenied,
  [ErrorReason.APPROVAL_REQUIRED]: Code.FailedPrecondition,
  [ErrorReason.APPROVAL_REJECTED]: Code.PermissionDenied,
  [ErrorReason.APPROVAL_EXPIRED]: Code.DeadlineExceeded,
  [ErrorReason.APPROVAL_DECIDED]: Code.FailedPrecondition,
  [ErrorReason.FOUR_EYES]: Code.PermissionDenied,
  [ErrorReason.RATE_LIMITED]: Code.ResourceExhausted,
  [ErrorReason.GRANT_INVALID]: Code.PermissionDenied,
  [ErrorReason.GRANT_REPLAYED]: Code.PermissionDenied,
  [ErrorReason.GRANT_EXPIRED]: Code.PermissionDenied,
  [ErrorReason.GRANT_WRONG_DEVICE]: Code.PermissionDenied,
  [ErrorReason.GRANT_WRONG_ARGUMENTS]: Code.PermissionDenied,
  [ErrorReason.MANIFEST_REFUSED]: Code.PermissionDenied,
  [ErrorReason.PATH_OUTSIDE_ROOTS]: Code.PermissionDenied,
  [ErrorReason.NOT_AVAILABLE]: Code.Unimplemented,
  [ErrorReason.START_FAILED]: Code.FailedPrecondition,
  [ErrorReason.TOOL_FAILED]: Code.Aborted,
  [ErrorReason.TIMED_OUT]: Code.DeadlineExceeded,
  [ErrorReason.CANCELLED]: Code.Canceled,
  [ErrorReason.INTERRUPTED]: Code.Unknown,
  [ErrorReason.NOT_STARTED]: Code.Unavailable,
  [ErrorReason.DEVICE_OFFLINE]: Code.Unavailable,
  [ErrorReason.POLICY_UNAVAILABLE]: Code.Unavailable,
  [ErrorReason.NOT_READY]: Code.Unavailable,
  [ErrorReason.CALL_ID_REUSED]: Code.AlreadyExists,
  [ErrorReason.TARGET_NOT_FOUND]: Code.NotFound,
  [ErrorReason.OS_REFUSED]: Code.PermissionDenied,
  [ErrorReason.TAMPERED]: Code.DataLoss,
  [ErrorReason.INTERNAL]: Code.Internal,
  [ErrorReason.CALL_ENDED]: Code.FailedPrecondition,
  [ErrorReason.RECEIPT_INVALID]: Code.DataLoss,
};

/** The Connect code of a reason. A reason from a newer peer is Internal. */
export function codeOf(reason: ErrorReason): Code {
  return (CODES as Record<number, Code>)[reason] ?? Code.Internal;
}
