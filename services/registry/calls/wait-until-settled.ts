import { CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import type { GovernedCall } from "./governed-call.ts";
import { interrupted } from "./interrupted.ts";
import type { Watcher, WatchOptions } from "./live-call.ts";

/** A call that can be waited for, whether it is live or has ended. */
export interface AwaitedCall {
  readonly call: GovernedCall;
  readonly ended: Promise<GovernedCall>;
  watch?(watcher: Watcher, options?: WatchOptions): () => void;
}

/** How long a call is waited for. */
export interface WaitOptions {
  /** How long a held one waits for its human, in milliseconds, each time that it is held. */
  waitMs: number;
  /** Ends the wait: its caller has left. */
  signal: AbortSignal;
}

/**
 * Resolves with the call when it has ended, or as it stands when it goes nowhere for now: it is queued for a device that is
 * offline, no person has decided about it in time, or its caller has left. Rejects with INTERRUPTED where it is interrupted.
 */
export async function waitUntilSettled(awaited: AwaitedCall, { waitMs, signal }: WaitOptions): Promise<GovernedCall> {
  const resting = Promise.withResolvers<GovernedCall>();
  let timer: NodeJS.Timeout | undefined;
  const rest = () => resting.resolve(awaited.call);
  const look = (state: CallState) => {
    clearTimeout(timer);
    if (state === CallState.QUEUED) rest();
    if (state === CallState.HELD) timer = setTimeout(rest, waitMs);
  };
  const onEvent: Watcher = ({ event }) => {
    if (event.case === "call") look(event.value.status?.state ?? CallState.UNSPECIFIED);
    return undefined;
  };
  const states = (state: CallState) => state === CallState.QUEUED || state === CallState.HELD || timer !== undefined;
  const unwatch = awaited.watch?.(onEvent, { output: false, states });
  signal.addEventListener("abort", rest, { once: true });
  try {
    look(awaited.call.status.state);
    if (signal.aborted) rest();
    const ended = awaited.ended.catch((cause: unknown): never => {
      throw interrupted(awaited.call.id, cause);
    });
    return await Promise.race([ended, resting.promise]);
  } finally {
    clearTimeout(timer);
    unwatch?.();
    signal.removeEventListener("abort", rest);
  }
}
