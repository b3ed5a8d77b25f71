import { completeCall } from "../../client/complete-call.ts";
import type { FanOutPlan, FanOutSummary } from "../../gen/ts/reeve/fanout/v1/fan_out_service_pb.ts";
import { exitCodeOfCall } from "../call/exit-code.ts";
import { ExitCode, exitCodeOfReason } from "../exit-codes.ts";

/**
 * The exit code of a fan-out: 0 only where every call succeeded; otherwise that of the first device, in the order of the
 * plan, whose call did not, else of why it was stopped, else of calls that are kept.
 */
export function exitCodeOfFanOut(plan: FanOutPlan, summary: FanOutSummary): number {
  if (summary.succeeded) return ExitCode.OK;
  const first = plan.waves.flatMap(({ devices }) => devices).find((device) => Object.hasOwn(summary.failed, device));
  const failed = first === undefined ? undefined : summary.failed[first];
  const call = failed && completeCall(failed);
  if (call !== undefined)
    return call.status.error ? exitCodeOfReason(call.status.error.reason) : notOk(exitCodeOfCall(call));
  if (summary.stopped && summary.queued.length === 0) return notOk(exitCodeOfReason(summary.stopped.reason));
  return summary.queued.length > 0 ? ExitCode.HELD : ExitCode.TOOL_FAILED;
}

function notOk(code: number): number {
  return code === ExitCode.OK ? ExitCode.TOOL_FAILED : code;
}
