import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";

/**
 * What a device may say of itself and its tools. Anything else, such as that policy said no or that the database was unavailable,
 * is not for a device to say: callers act on it.
 */
export const DEVICE_REASONS: ReadonlySet<ErrorReason> = new Set([
  ErrorReason.INVALID_INPUT,
  ErrorReason.INPUT_TOO_LARGE,
  ErrorReason.UNKNOWN_TOOL,
  ErrorReason.POLICY_BLOCKED,
  ErrorReason.GRANT_INVALID,
  ErrorReason.GRANT_REPLAYED,
  ErrorReason.GRANT_EXPIRED,
  ErrorReason.GRANT_WRONG_DEVICE,
  ErrorReason.GRANT_WRONG_ARGUMENTS,
  ErrorReason.MANIFEST_REFUSED,
  ErrorReason.PATH_OUTSIDE_ROOTS,
  ErrorReason.NOT_AVAILABLE,
  ErrorReason.START_FAILED,
  ErrorReason.TOOL_FAILED,
  ErrorReason.TIMED_OUT,
  ErrorReason.CANCELED,
  ErrorReason.INTERRUPTED,
  ErrorReason.NOT_STARTED,
  ErrorReason.CALL_ID_REUSED,
  ErrorReason.TARGET_NOT_FOUND,
  ErrorReason.OS_REFUSED,
  ErrorReason.PRECONDITION_CHANGED,
  ErrorReason.HOST_NOT_GRANTED,
  ErrorReason.SECRET_REFUSED,
  ErrorReason.INTERNAL,
]);
