import { CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { ExecutionOutcome } from "../../../gen/ts/reeve/device/v1/receipt_pb.ts";

/** The call's end for each outcome that a device reports. */
const END_OF: Record<number, CallState> = {
  [ExecutionOutcome.SUCCEEDED]: CallState.SUCCEEDED,
  [ExecutionOutcome.FAILED]: CallState.FAILED,
  [ExecutionOutcome.TIMED_OUT]: CallState.TIMED_OUT,
  [ExecutionOutcome.CANCELED]: CallState.CANCELED,
  [ExecutionOutcome.REFUSED]: CallState.FAILED,
  [ExecutionOutcome.INTERRUPTED]: CallState.UNKNOWN,
  [ExecutionOutcome.NOT_STARTED]: CallState.FAILED,
};

/** The call's end for what the device reported. An outcome that this version does not know is UNKNOWN, never a success. */
export function endOf(outcome: ExecutionOutcome): CallState {
  return END_OF[outcome] ?? CallState.UNKNOWN;
}

/** The state's short name, such as "SUCCEEDED". */
export function stateName(state: CallState): string {
  return STATE_NAMES.get(state) ?? String(state);
}

const STATE_NAMES = new Map<CallState, string>(
  Object.entries(CallState).map(([name, value]) => [value as CallState, name]),
);
