import { CallState } from "../gen/ts/reeve/call/v1/call_pb.ts";
import type { CallEvent, Refusal } from "../gen/ts/reeve/call/v1/call_service_pb.ts";
import { type ExecutionOutput, OutputStream } from "../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { type CompleteCall, completeCall } from "./complete-call.ts";

/** Something that happened to a call before its end. */
export type CallUpdate =
  /** It is in a new state, such as "permitted" or "dispatched". */
  | { kind: "state"; callId: string; state: string }
  /** A human must decide. */
  | { kind: "held"; callId: string; approvalId: string }
  /** The tool printed something. Untrusted. */
  | { kind: "output"; callId: string; stream: "stdout" | "stderr"; text: string }
  /** Some of what it printed is not shown, and why. */
  | { kind: "gap"; callId: string; message: string };

/** How following a call ended. */
export type CallEnd =
  /** The call reached an end state. */
  | { kind: "ended"; call: CompleteCall }
  /** It was still held when the wait was over. It goes on without a follower. */
  | { kind: "held"; call: CompleteCall }
  /** It waits for its device, which is offline. It goes on without a follower. */
  | { kind: "queued"; call: CompleteCall }
  /** It never became a call: nothing ran. */
  | { kind: "refused"; refusal: Refusal }
  /** The connection is gone for good, or a canceled call did not end in time: what became of the call is not known. */
  | { kind: "lost"; cause: unknown };

/** What is known of a call, across the streams it was followed on. */
export interface CallProgress {
  /** Takes an event; returns the end, where it is one. */
  take(event: CallEvent): CallEnd | undefined;
  /** How many events were taken. */
  received(): number;
  /** The number of the chunk of output that comes next; undefined where none has come. */
  nextOutput(): number | undefined;
  /** Stops the clock. */
  close(): void;
}

/** The short name of a state, such as "dispatched". */
export function stateName(state: CallState): string {
  return (STATE_NAMES.get(state) ?? `state_${state}`).toLowerCase();
}

const STATE_NAMES: ReadonlyMap<number, string> = new Map(
  Object.entries(CallState).map(([name, value]) => [value, name]),
);

/**
 * Reports what happens to a call, each thing once however often a stream repeats it.
 *
 * @param onWaitOver called when no event came of a held call for `approvalWaitMs` milliseconds.
 */
export function createCallProgress(
  onUpdate: (update: CallUpdate) => void,
  approvalWaitMs: number,
  onWaitOver: () => void,
): CallProgress {
  const print = createPrinter(onUpdate);
  let received = 0;
  let state: CallState = CallState.UNSPECIFIED;
  let clock: ReturnType<typeof setTimeout> | undefined;

  const enter = (call: CompleteCall): void => {
    if (call.status.state === state) return;
    state = call.status.state;
    onUpdate({ kind: "state", callId: call.id, state: stateName(state) });
    clearTimeout(clock);
    if (state !== CallState.HELD) return;
    onUpdate({ kind: "held", callId: call.id, approvalId: call.status.approval?.id ?? "" });
    clock = setTimeout(onWaitOver, approvalWaitMs);
  };

  return {
    take({ event, callId: eventCallId }) {
      received++;
      if (event.case === "refusal") return { kind: "refused", refusal: event.value };
      if (event.case === "output") {
        // What prints is not held any more, whether or not the stream reported it.
        clearTimeout(clock);
        print.take(event.value);
      }
      if (event.case === "outputGap") onUpdate({ kind: "gap", callId: eventCallId, message: event.value.message });
      if (event.case !== "call") return undefined;
      const call = completeCall(event.value);
      enter(call);
      if (state === CallState.QUEUED) return { kind: "queued", call };
      return isEnd(state) ? { kind: "ended", call } : undefined;
    },
    received: () => received,
    nextOutput: print.next,
    close: () => clearTimeout(clock),
  };
}

/** Whether a call in this state has ended. A state of a newer registry has not: an end is never guessed. */
export function isEnd(state: CallState): boolean {
  return ENDS.has(state);
}

const ENDS: ReadonlySet<CallState> = new Set([
  CallState.SUCCEEDED,
  CallState.FAILED,
  CallState.TIMED_OUT,
  CallState.CANCELED,
  CallState.DENIED,
  CallState.EXPIRED,
  CallState.UNKNOWN,
]);

function createPrinter(onUpdate: (update: CallUpdate) => void): {
  take(output: ExecutionOutput): void;
  next(): number | undefined;
} {
  // One decoder a stream: a character may be split between two chunks.
  const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  let next: number | undefined;
  return {
    take({ callId, sequence, stream: from, data }) {
      if (next !== undefined && sequence < next) return;
      next = sequence + 1;
      const stream = from === OutputStream.STDERR ? "stderr" : "stdout";
      const text = decoders[stream].decode(data, { stream: true });
      if (text !== "") onUpdate({ kind: "output", callId, stream, text });
    },
    next: () => next,
  };
}
