import { setTimeout as sleep } from "node:timers/promises";
import type { CallEvent } from "../../../gen/ts/reeve/call/v1/call_service_pb.ts";
import type { Logger } from "../../../lib/log/log.ts";
import { type GovernedCall, governedCall } from "./governed-call.ts";
import { isEnd } from "./lifecycle.ts";
import { callEvent, type LiveCall, type OpenCall, type Watcher } from "./live-call.ts";
import type { Ownership } from "./ownership.ts";
import type { CallStore } from "./store.ts";

/** Follows calls that another replica owns. */
export interface CallFollower {
  /**
   * A call as it was just read, as an open one. What happens to it from then on is requested only when a caller waits for it,
   * watches or cancels it; nothing is kept for the others.
   */
  follow(call: GovernedCall): OpenCall;
  /** Resolves with the call's stored end, whichever replica brings it about. Rejects when the follower is closed. */
  end(callId: string): Promise<GovernedCall>;
  close(): void;
}

/** Dependencies of following. */
export interface FollowOptions {
  store: Pick<CallStore, "get">;
  ownership: Pick<Ownership, "wantCancel">;
  /** The call, where this replica owns it by now. */
  owned(callId: string): LiveCall | undefined;
  /**
   * Asks the replica that owns a call to report what happens to it, from how it stands now. Returns when it reports no more,
   * for whatever reason. Undefined where that replica cannot be asked.
   */
  ask(owner: string, callId: string, report: Watcher, canceled: AbortSignal): Promise<void> | undefined;
  logger: Logger;
  /** Waits between two tries; rejects when the signal aborts. Default: by the clock. */
  pause?(ms: number, signal: AbortSignal): Promise<unknown>;
}

/** How often to look where no replica can be asked, in milliseconds. */
const POLL_MS = 300;

/** The longest pause after tries that came to nothing, as while the bus is down, in milliseconds. */
const LONGEST_PAUSE_MS = 3000;

/** An owner that reported for so long was the owner indeed, in milliseconds. */
const LASTING_MS = 1000;

/** What was reported so lately may not be in the database yet, in milliseconds. */
const FRESH_MS = 1000;

/** An open call that is followed, whether anybody still wants to know or not. */
interface FollowedCall extends OpenCall {
  /** Sets how the call stands in the database. */
  bringUpToDate(stored: GovernedCall): void;
}

/** The database has the last word: events only say when to look at it. */
export function createCallFollower(options: FollowOptions): CallFollower {
  /** The calls that a caller waits for, watches or cancels. */
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
      // It is read by a caller that is about to cancel.
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
  let reportedMs = Number.NEGATIVE_INFINITY;
  let isEndReported = false;
  /** Stretches in a row that came to nothing. */
  let failures = 0;

  const show = (event: CallEvent): Promise<void> | undefined => {
    const reading = [...watchers].map((watcher) => watcher(event)).filter((one) => one !== undefined);
    return reading.length === 0 ? undefined : Promise.all(reading).then(() => undefined);
  };
  const enter = (changed: GovernedCall): void => {
    // The first report of the owner says how the call stands, which may be no news.
    const isNews = changed.status.state !== call.status.state;
    Object.assign(call, changed);
    if (isNews) void show(callEvent(call));
  };
  const bringUpToDate = (stored: GovernedCall): void => {
    if (performance.now() - reportedMs > FRESH_MS) enter(stored);
  };
  const report: Watcher = (event) => {
    if (event.event.case !== "call") return show(event);
    const call = governedCall(event.event.value);
    // It is in the database by now, with its output, which is too large for an event.
    isEndReported = isEnd(call.status.state);
    if (isEndReported) return undefined;
    reportedMs = performance.now();
    enter(call);
    return undefined;
  };
  /** One stretch with the call's owner. The stored end, where it has ended. */
  const stretch = async (): Promise<GovernedCall | undefined> => {
    const stored = await store.get(call.id);
    if (stored === undefined) throw new Error(`the call ${call.id} is not in the store`);
    if (isEnd(stored.call.status.state)) return stored.call;
    bringUpToDate(stored.call);
    const here = owned(call.id);
    const beganMs = performance.now();
    isEndReported = false;
    const reports =
      here === undefined ? ask(stored.owner, call.id, report, canceled.signal) : passOn(here, report, canceled.signal);
    await reports;
    failures = performance.now() - beganMs < LASTING_MS ? failures + 1 : 0;
    if (isEndReported && failures < 2) return undefined;
    await pause(reports === undefined ? POLL_MS : pauseAfter(failures), closing);
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
    // Written down as well: its owner may be gone, or be unreachable.
    ownership
      .wantCancel(call.id)
      .catch((error: unknown) => logger.warn({ err: error, call_id: call.id }, "a cancel was not noted"));
  });
  const ended = run();
  // It may not be awaited when the registry closes.
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

/** Another replica claims the call soon, or it ended just now; after more than one such stretch no owner can be asked. */
function pauseAfter(failures: number): number {
  if (failures < 2) return 20 + Math.random() * 50;
  return Math.min(LONGEST_PAUSE_MS, POLL_MS * 2 ** (failures - 2)) * (0.5 + Math.random() / 2);
}

/** Passes on what happens to a call that this replica owns, until it ends or is interrupted. */
async function passOn(live: LiveCall, report: Watcher, canceled: AbortSignal): Promise<void> {
  const cancel = () => live.canceled.abort();
  canceled.addEventListener("abort", cancel, { once: true });
  if (canceled.aborted) cancel();
  const unwatch = live.watch(report);
  await live.ended.catch(() => undefined);
  unwatch();
  canceled.removeEventListener("abort", cancel);
}
