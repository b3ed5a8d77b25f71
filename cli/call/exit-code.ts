import type { CompleteCall } from "../../client/complete-call.ts";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { ExitCode, exitCodeOfReason } from "../exit-codes.ts";

const BY_STATE: Readonly<Partial<Record<number, number>>> = {
  [CallState.HELD]: ExitCode.HELD,
  [CallState.QUEUED]: ExitCode.HELD,
  [CallState.DENIED]: ExitCode.DENIED,
  [CallState.EXPIRED]: ExitCode.HELD,
  [CallState.TIMED_OUT]: ExitCode.TIMED_OUT,
  [CallState.CANCELED]: ExitCode.CANCELED,
  [CallState.UNKNOWN]: ExitCode.UNKNOWN,
};

/**
 * The exit code of a call as it stands. One that succeeded ends with the exit code of the program that it ran, where
 * its output has one: 1 to 255 as they are. One that still runs, because the caller did not wait, is a 0.
 */
export function exitCodeOfCall(call: CompleteCall): number {
  if (call.status.state === CallState.SUCCEEDED) return programCode(call);
  if (call.status.state === CallState.FAILED)
    return exitCodeOfReason(call.status.error?.reason ?? ErrorReason.TOOL_FAILED);
  return BY_STATE[call.status.state] ?? ExitCode.OK;
}

function programCode(call: CompleteCall): number {
  const code = call.status.output?.exitCode;
  if (typeof code !== "number" || code === 0) return ExitCode.OK;
  return Number.isInteger(code) && code > 0 && code <= 255 ? code : ExitCode.TOOL_FAILED;
}
