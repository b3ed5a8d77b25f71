import type { DecisionRequest } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import type { CallEnd } from "./end.ts";
import type { GovernedCall } from "./governed-call.ts";

/** Queues calls for devices that are offline. */
export interface CallQueue {
  /** Writes down what policy has to be asked again about a call that may be queued. Undefined for others, which need no note. */
  note(call: GovernedCall, question: DecisionRequest): Promise<void> | undefined;
  /** Whether a call that may run has to be queued: its caller lets it wait, and its device is offline. */
  mustQueue(call: GovernedCall): boolean;
  /** Waits until the device is back, the time is over or the signal aborts. */
  next(call: GovernedCall, args: Uint8Array, signal: AbortSignal): Promise<QueueTurn>;
  /** The call has ended. */
  forget(call: GovernedCall): void;
}

/** What is to be done about a queued call. */
export type QueueTurn =
  /** The device is back: policy has to be asked again. */
  | { kind: "ask"; question: DecisionRequest }
  /** It is over without having been delivered. */
  | { kind: "end"; end: CallEnd }
  /** The signal has aborted. */
  | { kind: "canceled" };
