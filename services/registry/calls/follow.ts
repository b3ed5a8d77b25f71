import { setTimeout as sleep } from "node:timers/promises";
import type { CallEvent } from "../../../gen/ts/reeve/call/v1/call_service_pb.ts";
import type { Logger } from "../../../lib/log/log.ts";
import { type GovernedCall, governedCall } from "./governed-call.ts";
import { isEnd } from "./lifecycle.ts";
import { callEvent, type LiveCall, type OpenCall, type Watcher } from "./live-call.ts";
import type { Ownership } from "./ownership.ts";
import type { CallStore } from "./store.ts";

/** Follows calls whose life another replica leads. */
export interface CallFollower {
  /**
   * A call as it was just read, as an open one. What happens to it from then on is asked for only when somebody waits for it,
   * watches or cancels it; nothing is kept for whoever does not.
   */
  follow(call: GovernedCall): OpenCall;
  /** Resolves with the call's stored end, whoever brings it about. Rejects when the follower is closed. */
  end(callId: string): Promise<GovernedCall>;
  close(): void;
}

/** What following rests on. */
export interface FollowOptions {
  store: Pick<CallStore, "get">;
  ownership: Pick<Ownership, "wantCancel">;
  /** The call, where this replica leads its life by now. */
  owned(callId: string): LiveCall | undefined;
  /**
   * Asks the replica that leads a call to tell what happens to it, from how it stands now. Returns when it tells no more,
   * for whatever reason. Undefined where that replica cannot be asked.
   */
  ask(owner: string, callId: string, tell: Watcher, canceled: AbortSignal): Promise<void> | undefined;
  logger: Logger;
  /** Waits between two tries; rejects when the signal aborts. Default: by the clock. */
  pause?(ms: number, signal: AbortSignal): Promise<unknown>;
}

/** How often to look where nobody can be asked, in milliseconds. */
const POLL_MS = 300;

/** The longest pause after tries that came to nothing, as while the bus is down, in milliseconds. */
const LONGEST_PAUSE_MS = 3000;

/** Whoever told of a call for so long did tell of it, in milliseconds. */
const LASTING_MS = 1000;

/** What was told so lately may not be in the database yet, in milliseconds. */
const FRESH_MS = 1000;

/** An open call that is followed, whether anybody still wants to know or not. */
interface FollowedCall extends OpenCall {
  /** Takes over how the call stands in the database. */
  bringUpToDate(stored: GovernedCall): void;
}

/** The database has the last word: events only say when to look at it. */
export function createCallFollower(options: FollowOptions): CallFollower {
  /** The calls that somebody waits for, watches or cancels. */
  const followed = new Map<string, FollowedCall>();
  const closing = new AbortController();
  const begin = (call: GovernedCall): FollowedCall => {
    const known = followed.get(call.id);
    if (known !== undefined) return known;
    const one = createFollowed(call, options, closing.signal, () => followed.delete(call.id));
    followed.set(call.id, one);
    return one;
  };
  const follow = (call: GovernedCall): OpenCall => {
    let joined = followed.get(call.id);
    joined?.bringUpToDate(call);
    const join = (): FollowedCall => {
      joined ??= begin(call);
      return joined;
    };
    return {
      get call() {
        return joined?.call ?? call;
      },
      // Whoever asks for it is about to cancel.
      get canceled() {
        return join().canceled;
      },
      watch: (watcher, options) => join().watch(watcher, options),
      get ended() {
        return join().ended;
      },
    };
  };
  return {
    follow,
    async end(callId) {
      const stored = await options.store.get(callId);
      if (stored === undefined) throw new Error(`the call ${callId} is not in the store`);
      return isEnd(stored.call.status.state) ? stored.call : follow(stored.call).ended;
    },
    close: () => closing.abort(new Error("the registry is closing")),
  };
}

function createFollowed(
  call: GovernedCall,
  options: FollowOptions,
  closing: AbortSignal,
  onOver: () => void,
): FollowedCall {
  const { store, ownership, owned, ask, logger } = options;
  const pause = options.pause ?? ((ms, signal) => sleep(ms, undefined, { signal }));
  const watchers = new Set<Watcher>();
  const canceled = new AbortController();
  let toldMs = Number.NEGATIVE_INFINITY;
  let isEndTold = false;
  /** Stretches in a row that came to nothing. */
  let failures = 0;

  const show = (event: CallEvent): Promise<void> | undefined => {
    const reading = [...watchers].map((watcher) => watcher(event)).filter((one) => one !== undefined);
    return reading.length === 0 ? undefined : Promise.all(reading).then(() => undefined);
  };
  const enter = (changed: GovernedCall): void => {
    // The first word of whoever leads it says how the call stands, which may be no news.
    const isNews = changed.status.state !== call.status.state;
    Object.assign(call, changed);
    if (isNews) void show(callEvent(call));
  };
  const bringUpToDate = (stored: GovernedCall): void => {
    if (performance.now() - toldMs > FRESH_MS) enter(stored);
  };
  const tell: Watcher = (event) => {
    if (event.event.case !== "call") return show(event);
    const call = governedCall(event.event.value);
    // It is in the database by now, with its output, which is too large for an event.
    isEndTold = isEnd(call.status.state);
    if (isEndTold) return undefined;
    toldMs = performance.now();
    enter(call);
    return undefined;
  };
  /** One stretch with whoever leads the call now. The stored end, where there is one. */
  const stretch = async (): Promise<GovernedCall | undefined> => {
    const stored = await store.get(call.id);
    if (stored === undefined) throw new Error(`the call ${call.id} is not in the store`);
    if (isEnd(stored.call.status.state)) return stored.call;
    bringUpToDate(stored.call);
    const here = owned(call.id);
    const beganMs = performance.now();
    isEndTold = false;
    const told =
      here === undefined ? ask(stored.owner, call.id, tell, canceled.signal) : passOn(here, tell, canceled.signal);
    await told;
    failures = performance.now() - beganMs < LASTING_MS ? failures + 1 : 0;
    if (isEndTold && failures < 2) return undefined;
    await pause(told === undefined ? POLL_MS : pauseAfter(failures), closing);
    return undefined;
  };
  const run = async (): Promise<GovernedCall> => {
    for (;;) {
      closing.throwIfAborted();
      try {
        const end = await stretch();
        if (end === undefined) continue;
        enter(end);
        onOver();
        return call;
      } catch (error: unknown) {
        closing.throwIfAborted();
        logger.warn({ err: error, call_id: call.id }, "a call of another replica could not be followed; trying again");
        await pause(POLL_MS, closing);
      }
    }
  };
  canceled.signal.addEventListener("abort", () => {
    // Written down as well: whoever leads it may be gone, or be away from the bus.
    ownership
      .wantCancel(call.id)
      .catch((error: unknown) => logger.warn({ err: error, call_id: call.id }, "a cancel was not noted"));
  });
  const ended = run();
  // Nobody may be waiting when the registry closes.
  ended.catch(() => undefined);

  return {
    call,
    canceled,
    watch(watcher) {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
    ended,
    bringUpToDate,
  };
}

/** Somebody else has the call soon, or it ended just now; after more than one such stretch there is nobody to ask. */
function pauseAfter(failures: number): number {
  if (failures < 2) return 20 + Math.random() * 50;
  return Math.min(LONGEST_PAUSE_MS, POLL_MS * 2 ** (failures - 2)) * (0.5 + Math.random() / 2);
}

/** Passes on what happens to a call that this replica leads, until its life is over. */
async function passOn(live: LiveCall, tell: Watcher, canceled: AbortSignal): Promise<void> {
  const cancel = () => live.canceled.abort();
  canceled.addEventListener("abort", cancel, { once: true });
  if (canceled.aborted) cancel();
  const unwatch = live.watch(tell);
  await live.ended.catch(() => undefined);
  unwatch();
  canceled.removeEventListener("abort", cancel);
}
