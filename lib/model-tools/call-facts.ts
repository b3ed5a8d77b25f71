import { type Call, CallState, type CallStatus } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { DEVICE_REASONS } from "../fault/device-reasons.ts";
import type { ErrorFacts } from "./error-text.ts";

/** A call with its status. */
export type CallWithStatus = Pick<Call, "id"> & { status: CallStatus };

/** The facts of a call that ended otherwise than SUCCEEDED, for `errorText`. */
export function endFacts({ id, status }: CallWithStatus): ErrorFacts {
  const { state, error, errorMessage } = status;
  const reason = error?.reason ?? REASONS[state] ?? ErrorReason.TOOL_FAILED;
  const unknown = state === CallState.UNKNOWN;
  const said = errorMessage !== "" || error !== undefined;
  return {
    reason,
    message: errorMessage === "" ? `the call ended as ${stateWord(state)}` : errorMessage,
    metadata: error?.metadata ?? {},
    violations: error?.violations ?? [],
    own: { approval_id: status.approval?.id ?? "", ...(unknown ? { call_id: id } : {}) },
    fromDevice: said && REACHED_DEVICE.has(state) && DEVICE_REASONS.has(reason),
    ...(unknown ? { advice: "What it did is not known. Look before doing it again." } : {}),
  };
}

/** The facts of a call that waits for a person. */
export function heldFacts({ id, status }: CallWithStatus): ErrorFacts {
  return {
    reason: ErrorReason.APPROVAL_REQUIRED,
    message: "a person must approve this call and has not decided yet",
    metadata: { call_id: id, approval_id: status.approval?.id ?? "" },
    advice:
      "It has not run. It runs once it is approved, without being asked for again: do not send it again. " +
      "Go on with what does not need it, or report to the user which approval it waits for.",
  };
}

/** The facts of a call that waits for its device. */
export function queuedFacts({ id }: CallWithStatus): ErrorFacts {
  return {
    reason: ErrorReason.DEVICE_OFFLINE,
    message: "the device is offline, and the call waits until it is back",
    metadata: { call_id: id },
    advice: "It has not run. It runs when the device is back, without being asked for again: do not send it again.",
  };
}

/** The name of a state, such as "dispatched". */
export function stateWord(state: CallState): string {
  return (WORDS.get(state) ?? `state_${state}`).toLowerCase();
}

const WORDS: ReadonlyMap<number, string> = new Map(Object.entries(CallState).map(([name, value]) => [value, name]));

/** The ends that a device reports. Of the others a rule or a person has said why. */
const REACHED_DEVICE: ReadonlySet<CallState> = new Set([
  CallState.FAILED,
  CallState.TIMED_OUT,
  CallState.CANCELED,
  CallState.UNKNOWN,
]);

const REASONS: Partial<Record<number, ErrorReason>> = {
  [CallState.DENIED]: ErrorReason.POLICY_DENIED,
  [CallState.EXPIRED]: ErrorReason.APPROVAL_EXPIRED,
  [CallState.TIMED_OUT]: ErrorReason.TIMED_OUT,
  [CallState.CANCELED]: ErrorReason.CANCELED,
  [CallState.UNKNOWN]: ErrorReason.INTERRUPTED,
};
