import { setTimeout as sleep } from "node:timers/promises";
import { ConnectError } from "@connectrpc/connect";
import { FiringState, MissedFirings, Overlap } from "../../../gen/ts/reeve/schedule/v1/schedule_service_pb.ts";
import { faultDetail, isRetryable } from "../../../lib/fault/fault.ts";
import type { Logger } from "../../../lib/log/log.ts";
import type { Calls } from "../calls/calls.ts";
import { isEnd } from "../calls/lifecycle.ts";
import { scheduledCallId, scheduledRequest } from "./scheduled-call.ts";
import type { ScheduleStore, StoredFiring, StoredSchedule } from "./store.ts";
import { timingOf } from "./timing.ts";

/** Dependencies of firing. */
export interface FirePorts {
  store: ScheduleStore;
  calls: Pick<Calls, "begin" | "store">;
  logger: Logger;
  now(): number;
  /** How long firings are listed, in milliseconds. */
  keepMs: number;
  /** How often to look for schedules of other replicas, in milliseconds. Default 5000. */
  lookMs?: number;
}

/** Fires schedules when their times come. */
export interface Firer {
  /** Looks at once, as where a schedule was made or resumed. */
  wake(): void;
  /** Makes the call of a firing that is written down, and writes down what became of it. Never rejects. */
  makeCall(schedule: StoredSchedule, firing: StoredFiring): Promise<StoredFiring>;
  close(): Promise<void>;
}

/** From when on a time counts as missed, in milliseconds: no registry ran then. */
const MISSED_MS = 60_000;

/** For how long a call is tried that does not come about for a reason that passes, in milliseconds. */
const TRY_MS = 60_000;

/**
 * Each time is claimed by one replica, in the transaction that sets the next time, before its call is made. A replica that dies
 * in between leaves a claimed firing, and any replica makes its call then: under the same id, so that it runs once.
 */
export function openFirer(ports: FirePorts): Firer {
  const { store, logger, now, keepMs, lookMs = 5000 } = ports;
  const closing = new AbortController();
  let awake = Promise.withResolvers<void>();
  const making = new Map<string, Promise<StoredFiring>>();
  /** Since when each call is tried here that has not come about yet. */
  const tried = new Map<string, number>();
  const begin = (schedule: StoredSchedule, firing: StoredFiring): Promise<StoredFiring> => {
    const key = `${firing.schedule}/${firing.scheduledMs}`;
    const sinceMs = tried.get(key) ?? now();
    tried.set(key, sinceMs);
    const make = async (): Promise<StoredFiring> => {
      const end = await makeCall(schedule, firing, sinceMs, ports).finally(() => making.delete(key));
      if (end.state !== FiringState.CLAIMED) tried.delete(key);
      return end;
    };
    const done = making.get(key) ?? make();
    making.set(key, done);
    return done;
  };
  const fire = async (schedule: StoredSchedule): Promise<void> => {
    const firing = await firingOf(schedule, ports);
    const next = timingOf(schedule.spec, schedule.createMs).next(Math.max(now(), firing.scheduledMs));
    if (!(await store.claim(firing, next, now() - keepMs))) return;
    if (firing.state === FiringState.CLAIMED) void begin(schedule, firing);
    else logger.info({ schedule: schedule.name, why: firing.message }, "schedule skipped");
  };
  /** What goes wrong with one schedule keeps no other from firing. */
  const each = async (
    names: readonly string[],
    act: (schedule: StoredSchedule, at: number) => unknown,
  ): Promise<boolean> => {
    let isWell = true;
    for (const [at, name] of names.entries()) {
      try {
        const schedule = await store.find(name);
        if (schedule !== undefined) await act(schedule, at);
      } catch (err: unknown) {
        isWell = false;
        logger.warn({ err, schedule: name }, "schedule cannot be fired");
      }
    }
    return isWell;
  };
  /** False where something went wrong, which is tried again after a while. */
  const look = async (): Promise<boolean> => {
    const claimed = await store.claimed();
    const names = claimed.map(({ schedule }) => schedule);
    const tried = await each(names, (schedule, at) => claimed[at] && void begin(schedule, claimed[at]));
    const fired = await each(await store.due(now()), (schedule) =>
      schedule.nextMs !== undefined && schedule.nextMs <= now() ? fire(schedule) : undefined,
    );
    return tried && fired;
  };
  const looking = (async () => {
    while (!closing.signal.aborted) {
      awake = Promise.withResolvers();
      const isWell = await look().catch((err: unknown) => {
        logger.warn({ err }, "schedules cannot be looked for");
        return false;
      });
      const first = isWell ? await store.firstMs().catch(() => undefined) : undefined;
      const waitMs = Math.min(Math.max((first ?? Number.POSITIVE_INFINITY) - now(), 50), lookMs);
      await Promise.race([sleep(waitMs, undefined, { signal: closing.signal }).catch(() => undefined), awake.promise]);
    }
  })();
  return {
    wake: () => awake.resolve(),
    makeCall: begin,
    async close() {
      closing.abort();
      awake.resolve();
      await looking;
      await Promise.all(making.values());
    },
  };
}

/** What is to be done about the time of a schedule that has come. */
async function firingOf(schedule: StoredSchedule, { store, calls, now }: FirePorts): Promise<StoredFiring> {
  const { name, spec, nextMs: scheduledMs = now() } = schedule;
  const skipped = (message: string): StoredFiring => ({
    ...{ schedule: name, scheduledMs, callId: "", manual: false, message },
    state: FiringState.SKIPPED,
  });
  if (now() - scheduledMs > MISSED_MS && spec.missed !== MissedFirings.RUN_ONCE)
    return skipped("it was missed: no registry ran at that time");
  if (spec.overlap !== Overlap.ALLOW) {
    const before = (await store.firings(name, 20)).find(({ callId }) => callId !== "");
    const call = before && (await calls.store.get(before.callId))?.call;
    if (call !== undefined && !isEnd(call.status.state)) return skipped(`the call before, ${call.id}, has not ended`);
    if (before?.state === FiringState.CLAIMED) return skipped(`the call before, ${before.callId}, is about to be made`);
  }
  const callId = scheduledCallId(name, scheduledMs);
  return { schedule: name, scheduledMs, callId, manual: false, message: "", state: FiringState.CLAIMED };
}

/** Makes the call of a claimed firing, unless it has been made already. */
async function makeCall(
  { name, spec }: StoredSchedule,
  firing: StoredFiring,
  sinceMs: number,
  { store, calls, logger, now }: FirePorts,
): Promise<StoredFiring> {
  const finish = async (end: StoredFiring): Promise<StoredFiring> => {
    await store.finish(end).catch((err: unknown) => logger.warn({ err, schedule: name }, "firing not written"));
    return end;
  };
  const request = scheduledRequest(name, spec, firing.callId);
  try {
    const made = (await calls.store.get(firing.callId))?.call;
    // The device's name may mean another one by now, and then the same call would look like another.
    if (made?.spec.principalId !== request.principal.id) await calls.begin(request);
    return await finish({ ...firing, state: FiringState.CALLED });
  } catch (err: unknown) {
    const passes = faultDetail(err) === undefined || isRetryable(err);
    if (passes && now() - sinceMs < TRY_MS) {
      logger.warn({ err, schedule: name, call_id: firing.callId }, "scheduled call is tried again");
      return firing;
    }
    const message =
      faultDetail(err) === undefined ? "it failed within the registry" : ConnectError.from(err).rawMessage;
    logger.warn({ err, schedule: name, call_id: firing.callId }, "scheduled call refused");
    return finish({ ...firing, callId: "", state: FiringState.REFUSED, message });
  }
}
