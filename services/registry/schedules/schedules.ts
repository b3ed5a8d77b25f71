import { create, toJson } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import {
  type Firing,
  FiringSchema,
  FiringState,
  type Schedule,
  ScheduleSchema,
  type ScheduleSpec,
  ScheduleSpecSchema,
} from "../../../gen/ts/reeve/schedule/v1/schedule_service_pb.ts";
import type { Principal } from "../../../lib/auth/principal.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { invalidField } from "../../../lib/fault/invalid-input.ts";
import { canonicalJson, sha256Hex } from "../../../lib/sign/canonical.ts";
import type { Calls } from "../calls/calls.ts";
import type { CallRequest } from "../calls/receive.ts";
import type { Directory } from "../devices/directory.ts";
import type { Firer } from "./fire.ts";
import { scheduledCallId, scheduledRequest } from "./scheduled-call.ts";
import type { ScheduleStore, StoredFiring, StoredSchedule } from "./store.ts";
import { timingOf } from "./timing.ts";

/** The schedules of the registry. Every change is an operator's. */
export interface Schedules {
  create(name: string, spec: ScheduleSpec, creator: Principal): Promise<Schedule>;
  get(name: string): Promise<Schedule>;
  list(query: { pageSize: number; pageToken: string }): Promise<{ schedules: Schedule[]; nextPageToken: string }>;
  pause(name: string): Promise<Schedule>;
  resume(name: string): Promise<Schedule>;
  remove(name: string): Promise<void>;
  /** Fires now. */
  run(name: string): Promise<Firing>;
}

/** Dependencies of schedules. */
export interface SchedulePorts {
  store: ScheduleStore;
  calls: Pick<Calls, "store">;
  directory: Pick<Directory, "find">;
  /** Checks a request as the gate does. Throws the fault that the gate would. */
  receive(request: CallRequest): unknown;
  firer: Pick<Firer, "wake" | "makeCall">;
  now(): number;
}

const DEFAULT_PAGE = 50;
const FIRINGS = 20;

export function createSchedules(ports: SchedulePorts): Schedules {
  const { store, firer, now } = ports;
  const find = async (name: string): Promise<StoredSchedule> => {
    const found = await store.find(name);
    if (found !== undefined) return found;
    throw fault(ErrorReason.NOT_FOUND, { resource: `schedules/${name}` }, { message: `no schedule ${name}` });
  };
  const resource = async (one: StoredSchedule, limit = FIRINGS): Promise<Schedule> => {
    const firings = await store.firings(one.name, limit);
    return scheduleOf(one, await Promise.all(firings.map((firing) => firingOf(firing, ports))));
  };
  return {
    async create(name, spec, creator) {
      const createMs = now();
      const timing = timingOf(spec, createMs);
      const digest = sha256Hex(canonicalJson(toJson(ScheduleSpecSchema, spec)));
      await ports.directory.find(spec.device);
      ports.receive(scheduledRequest(name, spec, ""));
      const maker = { id: creator.id, name: creator.name };
      await store.insert({ name, spec, digest, creator: maker, createMs, nextMs: timing.next(createMs) });
      const one = await find(name);
      if (one.digest !== digest) throw invalidField("name", "unique", `is that of another schedule: ${name}`);
      firer.wake();
      return resource(one);
    },
    get: async (name) => resource(await find(name)),
    async list({ pageSize, pageToken }) {
      const limit = pageSize === 0 ? DEFAULT_PAGE : pageSize;
      const found = await store.list({ limit: limit + 1, after: pageToken });
      const shown = found.slice(0, limit);
      const schedules = await Promise.all(shown.map((one) => resource(one, 1)));
      return { schedules, nextPageToken: found.length > limit ? (shown.at(-1)?.name ?? "") : "" };
    },
    async pause(name) {
      await store.setNext((await find(name)).name, undefined);
      return resource(await find(name));
    },
    async resume(name) {
      const one = await find(name);
      if (one.nextMs === undefined) await store.setNext(name, timingOf(one.spec, one.createMs).next(now()));
      firer.wake();
      return resource(await find(name));
    },
    async remove(name) {
      await store.remove((await find(name)).name);
    },
    async run(name) {
      const schedule = await find(name);
      let scheduledMs = now();
      const claimed = (): StoredFiring => {
        const callId = scheduledCallId(name, scheduledMs);
        return { schedule: name, scheduledMs, callId, manual: true, message: "", state: FiringState.CLAIMED };
      };
      while (!(await store.add(claimed()))) scheduledMs++;
      return firingOf(await firer.makeCall(schedule, claimed()), ports);
    },
  };
}

function scheduleOf({ name, spec, creator, createMs, nextMs }: StoredSchedule, firings: Firing[]): Schedule {
  return create(ScheduleSchema, {
    name,
    spec,
    creatorId: creator.id,
    creatorName: creator.name,
    createTime: timestampFromMs(createMs),
    status: {
      paused: nextMs === undefined,
      firings,
      ...(nextMs !== undefined && { nextTime: timestampFromMs(nextMs) }),
    },
  });
}

async function firingOf(firing: StoredFiring, { calls }: Pick<SchedulePorts, "calls">): Promise<Firing> {
  const { scheduledMs, callId, state, manual, message } = firing;
  const call = callId === "" ? undefined : (await calls.store.get(callId))?.call;
  const callState = call?.status.state ?? CallState.UNSPECIFIED;
  return create(FiringSchema, {
    scheduledTime: timestampFromMs(scheduledMs),
    callId,
    state,
    callState,
    manual,
    message,
  });
}
