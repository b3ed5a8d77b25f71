import { create } from "@bufbuild/protobuf";
import type { CallState, CallStatus } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { type CallEvent, CallEventSchema } from "../../../gen/ts/reeve/call/v1/call_service_pb.ts";
import type { ExecutionOutput } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import type { Followers } from "../devices/output-flow.ts";
import type { OfferedTool } from "../tools/offered.ts";
import type { GovernedCall } from "./governed-call.ts";
import { isEnd, type LifecycleEvent, type Step, stepOf } from "./lifecycle.ts";
import type { QuotaTicket } from "./quotas.ts";

/**
 * Gets what happens to a call, its output as the device sent it: only another replica may get that before it was sanitized
 * (see watchOutput). Must not throw. Of output the promise resolves when it was read; undefined: nothing
 * waits.
 */
export type Watcher = (event: CallEvent) => Promise<void> | undefined;

/** What a watcher wants to know. */
export interface WatchOptions {
  /** Whether it follows the output too: a program that prints faster than it reads is slowed down. Default true. */
  output?: boolean;
  /** Which states it wants to know. A hint: it may get others as well. Default all. */
  states?(state: CallState): boolean;
}

/** A call that has not ended, whichever replica owns it: the call as it stands, and what can be waited for. */
export interface OpenCall {
  readonly call: GovernedCall;
  /** Aborted when the call is canceled. */
  readonly canceled: AbortController;
  /** Adds a watcher; the result removes it. The present state is not sent. */
  watch(watcher: Watcher, options?: WatchOptions): () => void;
  /** Resolves when the call has ended and its end is on disk. */
  readonly ended: Promise<GovernedCall>;
}

/** A call that this replica owns and runs. */
export interface LiveCall extends OpenCall {
  /** The tool as it was when the call was received. Undefined for a call that was resumed after a restart. */
  readonly tool: OfferedTool | undefined;
  /** The canonical arguments. */
  readonly args: Uint8Array;
  /**
   * Takes the step that an event leads to, with what else it changes, and notifies the watchers. Throws, and changes
   * nothing, where the event cannot happen in the call's state.
   */
  advance(event: LifecycleEvent, changes?: Partial<CallStatus>): Step;
  /** Sets how the call stands in the store, where another replica owns it by now. */
  replace(stored: GovernedCall): void;
  /** Passes on what the tool printed. The promise resolves when all who follow it have read it. */
  print(output: ExecutionOutput): Promise<void> | undefined;
  /** Those who read what the tool prints. */
  readonly followers: Followers;
  /** Interrupts the call, as when the disk is full: `ended` rejects. */
  interrupt(cause: unknown): void;
  /** Resolves when policy has decided, whatever it decided, or when the call was interrupted. */
  readonly decided: Promise<void>;
  /** Says that policy has decided. */
  markDecided(): void;
}

/**
 * A live call around a call message, which it changes in place from here on.
 *
 * @param ticket counts the call as what its principal has open. Default: it is not counted.
 */
export function createLiveCall(
  call: GovernedCall,
  args: Uint8Array,
  tool: OfferedTool | undefined,
  ticket?: QuotaTicket,
): LiveCall {
  const watchers = createWatchers();
  const ended = Promise.withResolvers<GovernedCall>();
  const decided = Promise.withResolvers<void>();
  // It may not be awaited when the call is interrupted.
  ended.promise.catch(() => undefined);
  const enter = (status: CallStatus): void => {
    call.status = status;
    ticket?.moved(call.status.state);
    watchers.notify(call);
    if (!isEnd(call.status.state)) return;
    decided.resolve();
    ended.resolve(call);
    watchers.clear();
  };
  return {
    call,
    tool,
    args,
    canceled: new AbortController(),
    advance(event, changes = {}) {
      const step = stepOf(call, event);
      // A call that is resumed is as it was: there is nothing to report.
      if (event !== "resume") enter(Object.assign(call.status, changes, { state: step.state }));
      return step;
    },
    replace: ({ status }) => enter(status),
    print(output) {
      if (!watchers.followers.isFollowed() || output.data.length === 0) return undefined;
      return watchers.print(create(CallEventSchema, { callId: call.id, event: { case: "output", value: output } }));
    },
    watch: watchers.add,
    followers: watchers.followers,
    interrupt(cause) {
      ticket?.left();
      watchers.clear();
      decided.resolve();
      ended.reject(cause);
    },
    ended: ended.promise,
    decided: decided.promise,
    markDecided: () => decided.resolve(),
  };
}

/** Who watches a call, and which of them follow its output. */
function createWatchers() {
  const all = new Set<{ watcher: Watcher; follows: boolean; states: WatchOptions["states"] }>();
  let following = 0;
  let onFollowed: (() => void)[] = [];
  const count = (change: number): void => {
    const before = following;
    following += change;
    if (before === 0 || following === 0) for (const listener of onFollowed) listener();
  };
  const followers: Followers = {
    isFollowed: () => following > 0,
    onChange(listener) {
      onFollowed = [...onFollowed, listener];
      return () => {
        onFollowed = onFollowed.filter((one) => one !== listener);
      };
    },
  };
  return {
    followers,
    notify(call: GovernedCall): void {
      let event: CallEvent | undefined;
      for (const { watcher, states } of all) {
        if (states !== undefined && !states(call.status.state)) continue;
        event ??= callEvent(call);
        void watcher(event);
      }
    },
    /** To those who follow the output; resolves when they have read it. */
    print(event: CallEvent): Promise<void> | undefined {
      const reading: Promise<void>[] = [];
      for (const { watcher, follows } of all) {
        const read = follows ? watcher(event) : undefined;
        if (read !== undefined) reading.push(read);
      }
      return reading.length === 0 ? undefined : Promise.all(reading).then(() => undefined);
    },
    add(watcher: Watcher, { output: follows = true, states }: WatchOptions = {}): () => void {
      const one = { watcher, follows, states };
      all.add(one);
      if (follows) count(1);
      return () => {
        if (all.delete(one) && follows) count(-1);
      };
    },
    clear(): void {
      all.clear();
      if (following > 0) count(-following);
    },
  };
}

/** The event that says how a call stands now. A copy, so that a later change does not show in it. */
export function callEvent(call: GovernedCall): CallEvent {
  return create(CallEventSchema, {
    callId: call.id,
    event: { case: "call", value: { ...call, status: { ...call.status } } },
  });
}
