import { RunState, type RunStatus } from "../../gen/ts/reeve/agent/v1/run_pb.ts";
import { ExitCode, exitCodeOfReason } from "../exit-codes.ts";

/** The exit code that a run's end stands for; 0 while it has none. */
export function exitCodeOfRun(status: RunStatus | undefined): number {
  switch (status?.state) {
    case RunState.FAILED:
      return status.error === undefined ? ExitCode.BROKEN : exitCodeOfReason(status.error.reason);
    case RunState.CANCELED:
      return ExitCode.CANCELED;
    case RunState.INTERRUPTED:
      return ExitCode.UNKNOWN;
    default:
      return ExitCode.OK;
  }
}
