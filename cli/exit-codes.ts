import { ErrorReason } from "../gen/ts/reeve/common/v1/error_pb.ts";

/** What the exit code of `reeve` says. A program run by a tool ends `reeve call` with its own code. */
export const ExitCode = {
  OK: 0,
  /** `doctor` found something broken, or the model of `chat` did not finish. */
  BROKEN: 1,
  USAGE: 2,
  DENIED: 3,
  HELD: 4,
  UNREACHABLE: 5,
  TIMED_OUT: 6,
  CANCELED: 7,
  UNKNOWN: 8,
  TOOL_FAILED: 9,
  AUDIT: 10,
  INTERNAL: 70,
  INTERRUPTED: 130,
} as const;

/** The exit codes in words, for `reeve --help`. */
export const exitCodeHelp = `Exit codes:
    0  it worked; for tools that run a program, the program's own exit code, as with ssh
    1  doctor found something broken, or the model of chat did not finish
    2  wrong usage or invalid input
    3  denied or blocked by policy, denied by a person, or not allowed to the caller
    4  still held when the wait was over, queued for a device that is offline, or the approval expired
    5  the device or a service cannot be reached
    6  the tool ran longer than allowed
    7  canceled
    8  unknown end: the device went offline while the tool may have been running
    9  the tool failed
   10  the audit log or a manifest does not verify, or something stored was changed
   70  internal error
  130  interrupted with Ctrl-C twice`;

const CODES: Readonly<Record<Exclude<ErrorReason, { readonly __unknown: never }>, number>> = {
  [ErrorReason.UNSPECIFIED]: ExitCode.INTERNAL,
  [ErrorReason.INVALID_INPUT]: ExitCode.USAGE,
  [ErrorReason.INPUT_TOO_LARGE]: ExitCode.USAGE,
  [ErrorReason.UNKNOWN_TOOL]: ExitCode.USAGE,
  [ErrorReason.UNKNOWN_DEVICE]: ExitCode.USAGE,
  [ErrorReason.NOT_FOUND]: ExitCode.USAGE,
  [ErrorReason.DEVICE_REQUIRED]: ExitCode.USAGE,
  [ErrorReason.UNAUTHENTICATED]: ExitCode.DENIED,
  [ErrorReason.ROLE_REQUIRED]: ExitCode.DENIED,
  [ErrorReason.TOOL_NOT_ALLOWED]: ExitCode.DENIED,
  [ErrorReason.POLICY_DENIED]: ExitCode.DENIED,
  [ErrorReason.POLICY_BLOCKED]: ExitCode.DENIED,
  [ErrorReason.APPROVAL_REQUIRED]: ExitCode.HELD,
  [ErrorReason.APPROVAL_DENIED]: ExitCode.DENIED,
  [ErrorReason.APPROVAL_EXPIRED]: ExitCode.HELD,
  [ErrorReason.APPROVAL_DECIDED]: ExitCode.USAGE,
  [ErrorReason.FOUR_EYES]: ExitCode.DENIED,
  [ErrorReason.RATE_LIMITED]: ExitCode.DENIED,
  [ErrorReason.GRANT_INVALID]: ExitCode.DENIED,
  [ErrorReason.GRANT_REPLAYED]: ExitCode.DENIED,
  [ErrorReason.GRANT_EXPIRED]: ExitCode.DENIED,
  [ErrorReason.GRANT_WRONG_DEVICE]: ExitCode.DENIED,
  [ErrorReason.GRANT_WRONG_ARGUMENTS]: ExitCode.DENIED,
  [ErrorReason.MANIFEST_REFUSED]: ExitCode.DENIED,
  [ErrorReason.PATH_OUTSIDE_ROOTS]: ExitCode.DENIED,
  [ErrorReason.NOT_AVAILABLE]: ExitCode.USAGE,
  [ErrorReason.START_FAILED]: ExitCode.TOOL_FAILED,
  [ErrorReason.TOOL_FAILED]: ExitCode.TOOL_FAILED,
  [ErrorReason.TIMED_OUT]: ExitCode.TIMED_OUT,
  [ErrorReason.CANCELED]: ExitCode.CANCELED,
  [ErrorReason.INTERRUPTED]: ExitCode.UNKNOWN,
  [ErrorReason.NOT_STARTED]: ExitCode.UNREACHABLE,
  [ErrorReason.DEVICE_OFFLINE]: ExitCode.UNREACHABLE,
  [ErrorReason.POLICY_UNAVAILABLE]: ExitCode.UNREACHABLE,
  [ErrorReason.NOT_READY]: ExitCode.UNREACHABLE,
  [ErrorReason.CALL_ID_REUSED]: ExitCode.USAGE,
  [ErrorReason.TARGET_NOT_FOUND]: ExitCode.TOOL_FAILED,
  [ErrorReason.OS_REFUSED]: ExitCode.TOOL_FAILED,
  [ErrorReason.TAMPERED]: ExitCode.AUDIT,
  [ErrorReason.INTERNAL]: ExitCode.INTERNAL,
  [ErrorReason.CALL_ENDED]: ExitCode.USAGE,
  [ErrorReason.RECEIPT_INVALID]: ExitCode.UNKNOWN,
  [ErrorReason.TOKEN_REFUSED]: ExitCode.DENIED,
  [ErrorReason.IDENTITY_REFUSED]: ExitCode.DENIED,
  [ErrorReason.JOIN_REFUSED]: ExitCode.DENIED,
  [ErrorReason.ENROLLMENT_PENDING]: ExitCode.HELD,
  [ErrorReason.DEVICE_LOCKED]: ExitCode.DENIED,
  [ErrorReason.QUEUE_EXPIRED]: ExitCode.UNREACHABLE,
  [ErrorReason.FAN_OUT_STOPPED]: ExitCode.TOOL_FAILED,
  [ErrorReason.LEASE_LOST]: ExitCode.UNREACHABLE,
  [ErrorReason.SELECTION_REFUSED]: ExitCode.USAGE,
  [ErrorReason.QUOTA_EXCEEDED]: ExitCode.DENIED,
  [ErrorReason.FOLLOWER_STALLED]: ExitCode.UNKNOWN,
  [ErrorReason.SANDBOX_UNAVAILABLE]: ExitCode.DENIED,
  [ErrorReason.PRECONDITION_CHANGED]: ExitCode.TOOL_FAILED,
  [ErrorReason.HOST_NOT_GRANTED]: ExitCode.DENIED,
  [ErrorReason.SECRET_REFUSED]: ExitCode.TOOL_FAILED,
  [ErrorReason.UNTRUSTED_CONTENT]: ExitCode.DENIED,
  [ErrorReason.RUN_ID_REUSED]: ExitCode.USAGE,
  [ErrorReason.RUN_ENDED]: ExitCode.USAGE,
  [ErrorReason.RUN_UNSUPPORTED]: ExitCode.USAGE,
  [ErrorReason.MODEL_FAILED]: ExitCode.TOOL_FAILED,
};

/** The exit code for a reason. A reason of a newer control plane is internal. */
export function exitCodeOfReason(reason: ErrorReason): number {
  return (CODES as Record<number, number>)[reason] ?? ExitCode.INTERNAL;
}
