import { CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import type { GovernedCall } from "./governed-call.ts";

/** The states of a call that has not ended. */
const OPEN_STATES = [
  CallState.RECEIVED,
  CallState.HELD,
  CallState.QUEUED,
  CallState.PERMITTED,
  CallState.DISPATCHED,
] as const;

const END_STATES = [
  CallState.SUCCEEDED,
  CallState.FAILED,
  CallState.TIMED_OUT,
  CallState.CANCELED,
  CallState.DENIED,
  CallState.EXPIRED,
  CallState.UNKNOWN,
] as const;

/** What can happen to a call besides its end. */
export const OCCURRENCES = ["permit", "defer", "hold", "dispatch", "return", "resume"] as const;

/**
 * permit: policy permits it, and it can be sent · defer: it is permitted, and waits for its device · hold: a person has to
 * decide · dispatch: it is about to be sent · return: it did not reach its device · resume: a process starts, or takes a call
 * over, and finds it in this state.
 */
export type Occurrence = (typeof OCCURRENCES)[number];

/** What happens to a call: an occurrence, or its end. */
export type LifecycleEvent = Occurrence | { end: CallState };

/** What has to be done in the new state. "redeliver": wait for the device, since it is not known whether it has the call. */
export type Command = "send" | "await-end" | "await-device" | "await-approval" | "redeliver" | "reconcile" | "finish";

/** When the new state is written: before the command, at some time while it lasts, with the call's end, or not at all. */
export type Write = "before" | "lazily" | "with-end" | "never";

/** A legal step. */
export interface Step {
  state: CallState;
  write: Write;
  command: Command;
}

/** What of a call its lifecycle depends on. */
export interface LifecycleFacts {
  /** Its caller lets it wait for a device that is offline. */
  queueable: boolean;
}

type Row = Partial<Record<Occurrence, (facts: LifecycleFacts) => Step | undefined>>;

const step = (state: CallState, write: Write, command: Command): Step => ({ state, write, command });
const always = (next: Step) => () => next;
const ifQueueable = (next: Step) => (facts: LifecycleFacts) => (facts.queueable ? next : undefined);

const DEFER = ifQueueable(step(CallState.QUEUED, "before", "await-device"));
const HOLD = step(CallState.HELD, "before", "await-approval");
const SEND = step(CallState.PERMITTED, "before", "send");

/** A call that may have been sent by a process that is gone: asked about again where it waits for its device, else reconciled. */
const sentBefore = (state: CallState): Row => ({
  permit: ifQueueable(SEND),
  defer: DEFER,
  hold: ifQueueable(HOLD),
  resume: ({ queueable }) => step(state, "never", queueable ? "redeliver" : "reconcile"),
});

/** From each open state, where each occurrence leads. What is not here is illegal. */
const STEPS: ReadonlyMap<CallState, Row> = new Map([
  [
    CallState.RECEIVED,
    {
      // A call that cannot wait has ended, most of the time, before this could be written.
      permit: ({ queueable }) => step(CallState.PERMITTED, queueable ? "before" : "never", "send"),
      defer: DEFER,
      hold: always(HOLD),
      // It may have been sent: that state is written lazily. One that was not never will be, as its caller was answered.
      resume: always(step(CallState.RECEIVED, "never", "reconcile")),
    },
  ],
  [
    CallState.HELD,
    {
      permit: always(SEND),
      defer: DEFER,
      hold: always(HOLD),
      resume: always(step(CallState.HELD, "never", "await-approval")),
    },
  ],
  [
    CallState.QUEUED,
    {
      permit: ifQueueable(SEND),
      defer: DEFER,
      hold: ifQueueable(HOLD),
      resume: always(step(CallState.QUEUED, "never", "await-device")),
    },
  ],
  [
    CallState.PERMITTED,
    { ...sentBefore(CallState.PERMITTED), dispatch: always(step(CallState.DISPATCHED, "lazily", "await-end")) },
  ],
  [CallState.DISPATCHED, { ...sentBefore(CallState.DISPATCHED), return: DEFER }],
]);

/** Ends that a decision brings about: a call that was sent and cannot wait is not decided on again. */
const BY_DECISION = new Set<CallState>([CallState.DENIED, CallState.EXPIRED]);
const ENDS = new Set<CallState>(END_STATES);

/** Whether a call in this state has ended. A state of a newer replica has not: an end is never guessed. */
export function isEnd(state: CallState): boolean {
  return ENDS.has(state);
}

/** Whether a call's caller lets it wait for a device that is offline. */
export function isQueueable(call: GovernedCall): boolean {
  return call.spec.queueExpireTime !== undefined;
}

/** The step that an event leads a call to. Throws where it cannot happen in the call's state: a fault of this program. */
export function stepOf(call: GovernedCall, event: LifecycleEvent): Step {
  const found = next(call.status.state, event, { queueable: isQueueable(call) });
  if (found !== undefined) return found;
  const what = typeof event === "string" ? event : `end in state ${event.end}`;
  throw new Error(`the call ${call.id} is in state ${call.status.state} and cannot ${what}`);
}

/** Where an event leads a call, and what has to be done there; undefined where it cannot happen in that state. */
export function next(state: CallState, event: LifecycleEvent, facts: LifecycleFacts): Step | undefined {
  const row = STEPS.get(state);
  if (typeof event === "string") return row?.[event]?.(facts);
  if (row === undefined || !isEnd(event.end)) return undefined;
  const mayHaveBeenSent = state === CallState.PERMITTED || state === CallState.DISPATCHED;
  if (BY_DECISION.has(event.end) && mayHaveBeenSent && !facts.queueable) return undefined;
  return step(event.end, "with-end", "finish");
}

/**
 * The states that a stored call may be in when a state is written over it: those that lead there, directly or by states
 * that need not have been written. A row in any other state is not touched.
 */
export function storedBefore(state: CallState): readonly CallState[] {
  return STORED_BEFORE.get(state) ?? [];
}

const STORED_BEFORE = new Map<CallState, CallState[]>(
  [...OPEN_STATES, ...END_STATES].map((state) => [state, findStoredBefore(state)]),
);

function findStoredBefore(target: CallState): CallState[] {
  const found = new Set<CallState>();
  const add = (state: CallState): void => {
    for (const from of OPEN_STATES) {
      const leads = stepsFrom(from).filter((to) => to.state === state);
      if (leads.length === 0 || found.has(from)) continue;
      found.add(from);
      if (isVolatile(from)) add(from);
    }
  };
  add(target);
  return [...found];
}

function stepsFrom(state: CallState): Step[] {
  const events: LifecycleEvent[] = [...OCCURRENCES, ...END_STATES.map((end) => ({ end }))];
  return [true, false].flatMap((queueable) => events.flatMap((event) => next(state, event, { queueable }) ?? []));
}

/** Whether a call can be in a state that was not written. */
function isVolatile(state: CallState): boolean {
  return OPEN_STATES.some((from) =>
    stepsFrom(from).some((to) => from !== state && to.state === state && to.write !== "before"),
  );
}
