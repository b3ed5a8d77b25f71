import { Outcome } from "../../../gen/ts/reeve/device/v1/receipt_pb.ts";
import { CallState } from "../../../gen/ts/reeve/registry/v1/call_pb.ts";

/** Whether a call in this state has ended. A state of a newer replica has not: an end is never guessed. */
export function isEnd(state: CallState): boolean {
  return state >= CallState.SUCCEEDED && state <= CallState.UNKNOWN;
}

/** The call's end for each end that a device tells. */
const END_OF: Record<number, CallState> = {
  [Outcome.SUCCEEDED]: CallState.SUCCEEDED,
  [Outcome.FAILED]: CallState.FAILED,
  [Outcome.TIMED_OUT]: CallState.TIMED_OUT,
  [Outcome.CANCELLED]: CallState.CANCELLED,
  [Outcome.REFUSED]: CallState.FAILED,
  [Outcome.INTERRUPTED]: CallState.UNKNOWN,
  [Outcome.NOT_STARTED]: CallState.FAILED,
};

/** The call's end for what the device told. An end that this version does not know is UNKNOWN, never a success. */
export function endOf(outcome: Outcome): CallState {
  return END_OF[outcome] ?? CallState.UNKNOWN;
}

/** The state's short name, such as "SUCCEEDED". */
export function stateName(state: CallState): string {
  return STATE_NAMES.get(state) ?? String(state);
}

const STATE_NAMES = new Map<CallState, string>(
  Object.entries(CallState).map(([name, value]) => [value as CallState, name]),
);
