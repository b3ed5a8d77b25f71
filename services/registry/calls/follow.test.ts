import { afterEach, expect, test } from "vitest";
import { CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { createLogger } from "../../../lib/log/log.ts";
import { eventually } from "../../../testkit/eventually.ts";
import { testCall } from "../../../testkit/test-call.ts";
import { type CallFollower, createCallFollower, type FollowOptions } from "./follow.ts";
import { type GovernedCall, governedCall } from "./governed-call.ts";
import { callEvent, type OpenCall, type Watcher } from "./live-call.ts";

const followers: CallFollower[] = [];
afterEach(() => {
  for (const follower of followers.splice(0)) follower.close();
});

/** A call of another replica, in a database that can be read and changed, and the one who can be asked about it. */
function scene(options: Partial<FollowOptions> = {}) {
  const stored = testCall({ id: "c", state: CallState.RECEIVED });
  const asked: { report: Watcher; canceled: AbortSignal; leave(): void }[] = [];
  const wanted: string[] = [];
  let reads = 0;
  const read = () => ({ ...stored, status: { ...stored.status } });
  const follower = createCallFollower({
    store: {
      get: async () => {
        reads++;
        return { call: read(), args: new Uint8Array(), owner: "rep-other", cancelWanted: false };
      },
    },
    ownership: { wantCancel: async (id) => void wanted.push(id) },
    owned: () => undefined,
    ask: (_owner, _id, report, canceled) =>
      new Promise((resolve) => {
        asked.push({ report, canceled, leave: resolve });
      }),
    logger: createLogger({ service: "test", level: "silent" }),
    ...options,
  });
  followers.push(follower);
  return {
    stored,
    asked,
    wanted,
    reads: () => reads,
    /** What a request that names the call gets. */
    find: (): OpenCall => follower.follow(read()),
  };
}

/** The replica that is asked, once there is a reason to. */
async function ownerOf({ asked }: ReturnType<typeof scene>) {
  return eventually(() => {
    const last = asked.at(-1);
    if (last === undefined) throw new Error("nobody asks");
    return last;
  });
}

function statesOf(open: OpenCall): CallState[] {
  const states: CallState[] = [];
  open.watch(
    ({ event }) => void (event.case === "call" && states.push(event.value.status?.state ?? CallState.UNSPECIFIED)),
  );
  return states;
}

test("shows how a call stands whenever it is requested, and asks no replica about one that nothing waits for", () => {
  const one = scene();
  expect(one.find().call.status.state).toBe(CallState.RECEIVED);
  one.stored.status = testCall({ state: CallState.HELD, approval: { id: "apr-1" } }).status;
  expect(one.find().call).toMatchObject({ status: { state: CallState.HELD, approval: { id: "apr-1" } } });
  expect([one.asked.length, one.reads()]).toEqual([0, 0]);
});

test("all who wait for a call share one request to its owner, and see what it reports", async () => {
  const one = scene();
  const [first, second] = [one.find(), one.find()];
  const seen = [statesOf(first), statesOf(second)];
  const owner = await ownerOf(one);
  void owner.report(callEvent(testCall({ id: "c", state: CallState.HELD, approval: { id: "apr-1" } })));
  expect(seen).toEqual([[CallState.HELD], [CallState.HELD]]);
  expect(second.call.status.approval?.id).toBe("apr-1");
  expect(one.asked).toHaveLength(1);
});

test("what was reported a moment ago is not taken back by a database that does not have it yet", async () => {
  const one = scene();
  const open = one.find();
  const seen = statesOf(open);
  void (await ownerOf(one)).report(callEvent(testCall({ id: "c", state: CallState.DISPATCHED })));
  expect(one.find().call.status.state).toBe(CallState.DISPATCHED);
  expect(open.call.status.state).toBe(CallState.DISPATCHED);
  expect(seen).toEqual([CallState.DISPATCHED]);
});

test("those who watch see the end with its output, which no event between replicas holds", async () => {
  const one = scene();
  const open = one.find();
  const ends: GovernedCall[] = [];
  open.watch(({ event }) => void (event.case === "call" && ends.push(governedCall(event.value))));
  const owner = await ownerOf(one);
  Object.assign(one.stored.status, { state: CallState.SUCCEEDED, output: { text: "done" } });
  void owner.report(callEvent(testCall({ id: "c", state: CallState.SUCCEEDED })));
  owner.leave();
  expect(await open.ended).toMatchObject({ status: { state: CallState.SUCCEEDED, output: { text: "done" } } });
  expect(ends).toMatchObject([{ status: { state: CallState.SUCCEEDED, output: { text: "done" } } }]);
});

test("a cancel is passed on to the call's owner, and written down", async () => {
  const one = scene();
  one.find().canceled.abort();
  expect((await ownerOf(one)).canceled.aborted).toBe(true);
  expect(one.wanted).toEqual(["c"]);
});

test("those who watch see changes in the database where no replica can be asked", async () => {
  const one = scene({ ask: () => undefined, pause: () => new Promise((resolve) => setImmediate(resolve)) });
  const open = one.find();
  const seen = statesOf(open);
  one.stored.status.state = CallState.HELD;
  await eventually(() => expect(seen).toEqual([CallState.HELD]));
  one.stored.status.state = CallState.CANCELED;
  await open.ended;
  expect(seen).toEqual([CallState.HELD, CallState.CANCELED]);
});

test("asks less and less often while the bus is down", async () => {
  const pauses: number[] = [];
  const one = scene({
    ask: () => Promise.resolve(),
    pause: async (ms) => {
      pauses.push(ms);
      if (pauses.length === 8) one.stored.status.state = CallState.CANCELED;
    },
  });
  await one.find().ended;
  expect(pauses).toHaveLength(8);
  expect(pauses[0]).toBeLessThanOrEqual(70);
  for (const [n, ms] of pauses.slice(1).entries()) {
    const most = Math.min(3000, 300 * 2 ** n);
    expect(ms).toBeLessThanOrEqual(most);
    expect(ms).toBeGreaterThanOrEqual(most / 2);
  }
});
