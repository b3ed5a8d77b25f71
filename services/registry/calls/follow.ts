import { setTimeout as sleep } from "node:timers/promises";
import type { Call } from "../../../gen/ts/reeve/registry/v1/call_pb.ts";
import type { CallEvent } from "../../../gen/ts/reeve/registry/v1/registry_service_pb.ts";
import type { Logger } from "../../../lib/log/log.ts";
import type { Leadership } from "./leadership.ts";
import { callEvent, type LiveCall, type OpenCall, type Watcher } from "./live-call.ts";
import { isEnd } from "./state.ts";
import type { CallStore } from "./store.ts";

/** Follows calls whose life another replica leads. */
export interface CallFollower {
  /** The call as an open one. What happens to it is asked for only when somebody waits for it, watches or cancels it. */
  follow(call: Call): OpenCall;
  /** Resolves with the call's stored end, whoever brings it about. Rejects when the follower is closed. */
  end(callId: string): Promise<Call>;
  close(): void;
}

/** What following rests on. */
export interface FollowOptions {
  store: Pick<CallStore, "get">;
  leadership: Pick<Leadership, "wantCancel">;
  /** The call, where this replica leads its life by now. */
  led(callId: string): LiveCall | undefined;
  /**
   * Asks the replica that leads a call to tell what happens to it, from how it stands now. Returns when it tells no more,
   * for whatever reason. Undefined where that replica cannot be asked.
   */
  ask(owner: string, callId: string, tell: Watcher, cancelled: AbortSignal): Promise<void> | undefined;
  logger: Logger;
}

/** How often to look where nobody can be asked, in milliseconds. */
const POLL_MS = 300;

/** The database has the last word: events only say when to look at it. */
export function createCallFollower(options: FollowOptions): CallFollower {
  const followed = new Map<string, OpenCall>();
  const closing = new AbortController();
  const follow = (call: Call): OpenCall => {
    const known = followed.get(call.id);
    if (known !== undefined) return known;
    const one = createFollowed(call, options, closing.signal, () => followed.delete(call.id));
    followed.set(call.id, one);
    return one;
  };
  return {
    follow,
    async end(callId) {
      const stored = await options.store.get(callId);
      if (stored === undefined) throw new Error(`the call ${callId} is not in the store`);
      return isEnd(stored.call.state) ? stored.call : follow(stored.call).ended;
    },
    close: () => closing.abort(new Error("the registry is closing")),
  };
}

function createFollowed(call: Call, options: FollowOptions, closing: AbortSignal, onOver: () => void): OpenCall {
  const { store, leadership, led, ask, logger } = options;
  const watchers = new Set<Watcher>();
  const cancelled = new AbortController();
  let following: Promise<Call> | undefined;

  const tell = (event: CallEvent): void => {
    if (event.event.case === "call") {
      // The first word of whoever leads it says how the call stands, which may be no news.
      const isNews = event.event.value.state !== call.state;
      Object.assign(call, event.event.value);
      if (!isNews) return;
    }
    for (const watcher of watchers) watcher(event);
  };
  /** One stretch with whoever leads the call now. The stored end, where there is one. */
  const stretch = async (): Promise<Call | undefined> => {
    const stored = await store.get(call.id);
    if (stored === undefined) throw new Error(`the call ${call.id} is not in the store`);
    if (isEnd(stored.call.state)) return stored.call;
    const here = led(call.id);
    const told =
      here === undefined ? ask(stored.owner, call.id, tell, cancelled.signal) : passOn(here, tell, cancelled.signal);
    await told;
    // Somebody else has it soon, or it ended just now.
    await sleep(told === undefined ? POLL_MS : 20 + Math.random() * 50, undefined, { signal: closing });
    return undefined;
  };
  const run = async (): Promise<Call> => {
    for (;;) {
      closing.throwIfAborted();
      try {
        const end = await stretch();
        if (end === undefined) continue;
        tell(callEvent(end));
        onOver();
        return call;
      } catch (error: unknown) {
        closing.throwIfAborted();
        logger.warn({ err: error, call_id: call.id }, "a call of another replica could not be followed; trying again");
        await sleep(POLL_MS, undefined, { signal: closing });
      }
    }
  };
  const begin = (): Promise<Call> => {
    if (following === undefined) {
      following = run();
      // Nobody may be waiting when the registry closes.
      following.catch(() => undefined);
    }
    return following;
  };
  cancelled.signal.addEventListener("abort", () => {
    // Written down as well: whoever leads it may be gone, or be away from the bus.
    leadership
      .wantCancel(call.id)
      .catch((error: unknown) => logger.warn({ err: error, call_id: call.id }, "a cancel was not noted"));
    void begin();
  });

  return {
    call,
    cancelled,
    watch(watcher) {
      watchers.add(watcher);
      void begin();
      return () => watchers.delete(watcher);
    },
    get ended() {
      return begin();
    },
  };
}

/** Passes on what happens to a call that this replica leads, until its life is over. */
async function passOn(live: LiveCall, tell: Watcher, cancelled: AbortSignal): Promise<void> {
  const cancel = () => live.cancelled.abort();
  cancelled.addEventListener("abort", cancel, { once: true });
  if (cancelled.aborted) cancel();
  const unwatch = live.watch(tell);
  await live.ended.catch(() => undefined);
  unwatch();
  cancelled.removeEventListener("abort", cancel);
}
