import { createSecretKey } from "node:crypto";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import {
  FiringState,
  MissedFirings,
  Overlap,
  ScheduleSpecSchema,
} from "../../../gen/ts/reeve/schedule/v1/schedule_service_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { sealerWith } from "../../../lib/identity/sealer.ts";
import { createLogger } from "../../../lib/log/log.ts";
import type { Database } from "../../../lib/store/database.ts";
import { createGroupCommit, type GroupCommit } from "../../../lib/store/group-commit.ts";
import { type StoreKind, useStore } from "../../../lib/store/testdata/stores.ts";
import { eventually } from "../../../testkit/eventually.ts";
import { testCall } from "../../../testkit/test-call.ts";
import type { Calls } from "../calls/calls.ts";
import type { GovernedCall } from "../calls/governed-call.ts";
import type { CallRequest } from "../calls/receive.ts";
import { type RegistryTables, registryMigrations } from "../tables.ts";
import { type Firer, openFirer } from "./fire.ts";
import { scheduledCallId } from "./scheduled-call.ts";
import { createScheduleStore, type ScheduleStore } from "./store.ts";
import { timingOf } from "./timing.ts";

const START = Date.parse("2026-11-23T02:59:00Z");
const logger = createLogger({ service: "test", level: "silent" });

describe.each<StoreKind>(["SQLite in memory", "PostgreSQL"])("on %s", (kind) => {
  const place = useStore(kind);
  let db: Database<RegistryTables>;
  let store: ScheduleStore;
  let commits: GroupCommit<RegistryTables>[];
  let now: number;
  /** What came to the gate, and what became of it. */
  let asked: CallRequest[];
  let known: Map<string, GovernedCall>;
  let begin: (request: CallRequest) => Promise<void>;
  let open: Firer[];

  beforeEach(async () => {
    db = await place.open<RegistryTables>(registryMigrations);
    commits = [];
    store = storeOf();
    now = START;
    asked = [];
    known = new Map();
    open = [];
    begin = async (request) => {
      asked.push(request);
      known.set(request.callId, callOf(request, CallState.SUCCEEDED));
    };
  });
  afterEach(async () => {
    await Promise.all(open.map((one) => one.close()));
    await Promise.all(commits.map((one) => one.close()));
  });

  /** Each replica writes transactions of its own. */
  function storeOf(): ScheduleStore {
    const writes = createGroupCommit(db);
    commits.push(writes);
    return createScheduleStore(db, writes, sealerWith(createSecretKey(Buffer.alloc(32, 7))));
  }

  function callOf({ callId, principal }: CallRequest, state: CallState): GovernedCall {
    const call = testCall({ id: callId, state });
    call.spec.principalId = principal.id;
    return call;
  }

  function replica(): Firer {
    const calls = {
      begin: (request: CallRequest) => begin(request),
      store: { get: async (id: string) => (known.has(id) ? { call: known.get(id) } : undefined) },
    } as unknown as Pick<Calls, "begin" | "store">;
    const one = openFirer({ store: storeOf(), calls, logger, now: () => now, keepMs: 86_400_000, lookMs: 20 });
    open.push(one);
    return one;
  }

  /** A schedule of three o'clock, unless stated otherwise. */
  async function schedule(name: string, init: MessageInitShape<typeof ScheduleSpecSchema> = {}): Promise<void> {
    const spec = create(ScheduleSpecSchema, {
      timing: { case: "cron", value: { expression: "0 3 * * *" } },
      ...{ device: "nas", tool: "exec", params: { argv: ["true"] }, purpose: "to try" },
      ...init,
    });
    const nextMs = timingOf(spec, START).next(START);
    await store.insert({ name, spec, digest: "", creator: { id: "op", name: "ann" }, createMs: START, nextMs });
  }

  /** The firings of a schedule once there are so many of a state. */
  function firings(name: string, state: FiringState, count = 1) {
    return eventually(async () => {
      const found = (await store.firings(name, 50)).filter((one) => one.state === state);
      return found.length >= count ? found : Promise.reject(new Error(`${found.length} of ${count}`));
    });
  }

  const minutes = (count: number) => START + count * 60_000;

  test("nothing is called before its time, and then what the schedule says, as its own principal", async () => {
    await schedule("backup");
    replica();
    now = minutes(1) - 1;
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(asked).toEqual([]);
    now = minutes(1);
    const [firing] = await firings("backup", FiringState.CALLED);
    expect(firing).toMatchObject({ callId: "backup-20261123T030000000Z", scheduledMs: minutes(1), manual: false });
    expect(asked).toEqual([
      expect.objectContaining({
        ...{ device: "nas", tool: "exec", params: { argv: ["true"] }, callId: "backup-20261123T030000000Z" },
        ...{ purpose: "schedule backup: to try", client: "schedule" },
        principal: expect.objectContaining({ id: "schedule/backup", kind: "workflow" }) as unknown,
      }),
    ]);
    expect((await store.find("backup"))?.nextMs).toBe(Date.parse("2026-11-24T03:00:00Z"));
  });

  test("each time is fired by one of many replicas", async () => {
    await schedule("often", { timing: { case: "every", value: { seconds: 60n } } });
    for (let one = 0; one < 4; one++) replica();
    for (let minute = 1; minute <= 10; minute++) {
      now = minutes(minute);
      await firings("often", FiringState.CALLED, minute);
    }
    expect(asked.map(({ callId }) => callId)).toHaveLength(10);
    expect(new Set(asked.map(({ callId }) => callId)).size).toBe(10);
  });

  test("a firing whose replica died before its call is called by another, under the same id", async () => {
    await schedule("backup");
    const died = { schedule: "backup", scheduledMs: minutes(1), callId: "backup-1", manual: false, message: "" };
    await store.claim({ ...died, state: FiringState.CLAIMED }, minutes(1441), 0);
    now = minutes(1) + 5_000;
    replica();
    await firings("backup", FiringState.CALLED);
    expect(asked.map(({ callId }) => callId)).toEqual(["backup-1"]);
  });

  test("and where it died after its call, nothing is called again", async () => {
    await schedule("backup");
    const died = { schedule: "backup", scheduledMs: minutes(1), callId: "backup-1", manual: false, message: "" };
    await store.claim({ ...died, state: FiringState.CLAIMED }, minutes(1441), 0);
    known.set(
      "backup-1",
      callOf({ callId: "backup-1", principal: { id: "schedule/backup" } } as CallRequest, CallState.HELD),
    );
    replica();
    await firings("backup", FiringState.CALLED);
    expect(asked).toEqual([]);
  });

  test.each([CallState.HELD, CallState.DISPATCHED, CallState.QUEUED])(
    "while the call before is in state %s nothing is called, unless the schedule says so",
    async (state) => {
      begin = async (request) => {
        asked.push(request);
        known.set(request.callId, callOf(request, state));
      };
      const every = { timing: { case: "every", value: { seconds: 60n } } } as const;
      await schedule("one", every);
      await schedule("many", { ...every, overlap: Overlap.ALLOW });
      replica();
      for (let minute = 1; minute <= 3; minute++) {
        now = minutes(minute);
        await firings("many", FiringState.CALLED, minute);
      }
      const skipped = await firings("one", FiringState.SKIPPED, 2);
      expect(skipped[0]?.message).toMatch(/^the call before, one-.*, has not ended$/);
      expect(await firings("one", FiringState.CALLED)).toHaveLength(1);
    },
  );

  test("times at which no registry ran are skipped, or made up for once", async () => {
    const every = { timing: { case: "every", value: { seconds: 3600n } } } as const;
    await schedule("skips", every);
    await schedule("makes-up", { ...every, missed: MissedFirings.RUN_ONCE });
    now = START + 5.5 * 3_600_000;
    replica();
    const [skipped] = await firings("skips", FiringState.SKIPPED);
    expect(skipped).toMatchObject({
      scheduledMs: START + 3_600_000,
      callId: "",
      message: expect.stringContaining("missed") as string,
    });
    await firings("makes-up", FiringState.CALLED);
    expect(asked.map(({ principal }) => principal.id)).toEqual(["schedule/makes-up"]);
    for (const name of ["skips", "makes-up"]) expect((await store.find(name))?.nextMs).toBe(START + 6 * 3_600_000);
  });

  test("what never becomes a call is written down with why", async () => {
    begin = async () => {
      throw fault(ErrorReason.UNKNOWN_DEVICE, { device: "nas" }, { message: 'no device "nas"' });
    };
    await schedule("backup");
    now = minutes(1);
    replica();
    const [refused] = await firings("backup", FiringState.REFUSED);
    expect(refused).toMatchObject({ callId: "", message: 'no device "nas"' });
  });

  test("what fails for a reason that passes is tried again, under the same id", async () => {
    const ids: string[] = [];
    const works = begin;
    begin = async (request) => {
      ids.push(request.callId);
      if (ids.length < 3) throw fault(ErrorReason.NOT_READY);
      await works(request);
    };
    await schedule("backup");
    now = minutes(1);
    replica();
    await firings("backup", FiringState.CALLED);
    expect(new Set(ids).size).toBe(1);
    expect(asked).toHaveLength(1);
  });

  test("one that cannot be read keeps no other from firing", async () => {
    await schedule("damaged");
    await schedule("backup");
    await db
      .updateTable("schedules")
      .set({ spec: Buffer.from("x"), next_ms: minutes(0) })
      .where("name", "=", "damaged")
      .execute();
    now = minutes(1);
    replica();
    await firings("backup", FiringState.CALLED);
    expect(asked.map(({ callId }) => callId)).toEqual([scheduledCallId("backup", minutes(1))]);
  });

  test("one that is paused or removed fires no more", async () => {
    await schedule("paused");
    await schedule("removed");
    await store.setNext("paused", undefined);
    await store.remove("removed");
    now = minutes(2);
    replica();
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(asked).toEqual([]);
  });
});
