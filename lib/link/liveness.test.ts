import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { eventually } from "../../testkit/eventually.ts";
import { reasonOf } from "../fault/fault.ts";
import { dial, echo, fast, tapped, type Wire } from "./framed.fixture.ts";
import { type FramedOptions, framedDialer, framedEnd } from "./framed.ts";
import { type ToyFrame, toy, toyShapes } from "./framing/shape.fixture.ts";

// Time of the tests' own, in which a machine that is busy loses no tick.
beforeEach(() => void vi.useFakeTimers({ shouldAdvanceTime: true }));
afterEach(() => void vi.useRealTimers());

test("stays up without anything to say, and says so at every heartbeat", async () => {
  const [out, back]: [ToyFrame[], ToyFrame[]] = [[], []];
  const link = dial(framedDialer(tapped(framedEnd(echo(), toyShapes, fast), out, back), toyShapes, fast));
  const received = link.all();
  await eventually(() => expect(Math.min(out.length, back.length)).toBeGreaterThan(8));
  link.end();
  expect(await received).toEqual([]);
});

/** A link that was dialed, and on which the first message has come back. */
async function opened(far: Wire, options: FramedOptions) {
  const link = dial(framedDialer(far, toyShapes, options));
  link.send(toy("a"));
  expect(await link.next()).toEqual([toy("a")]);
  return link;
}

/** A wire that carries nothing more in either direction once `isDead` says so. */
function lossy(wire: Wire, isDead: () => boolean): Wire {
  async function* carry(frames: AsyncIterable<ToyFrame>) {
    for await (const frame of frames) {
      if (isDead()) await new Promise(() => undefined);
      yield frame;
    }
  }
  return (requests, signal) => carry(wire(carry(requests), signal));
}

/** Opens a link that carries nothing after that: the side that dialed gives it up. */
async function fallSilent(far: Wire, options: FramedOptions): Promise<void> {
  let isDead = false;
  const dying = lossy(far, () => isDead);
  const link = await opened(dying, options);
  isDead = true;
  await expect(link.all()).rejects.toThrow("silent");
}

test("both sides give up one that falls silent", async () => {
  const ends: unknown[] = [];
  const server: Wire = (requests, signal) => {
    signal.addEventListener("abort", () => ends.push(signal.reason));
    return echo()(requests, signal);
  };
  const far = framedEnd(server, toyShapes, fast);
  await fallSilent(far, fast);
  await eventually(() => expect(ends.map(reasonOf)).toEqual([ErrorReason.NOT_READY]));
});

/** Pings that are answered at once for as long as `answers` says, and the pings that were sent. */
function fakePings(answers: () => boolean) {
  let receivedBytes = 0;
  let sent = 0;
  let isDropped = false;
  const answer = (): void => {
    receivedBytes += 17;
  };
  return {
    answer,
    ping() {
      sent++;
      if (answers()) answer();
    },
    drop() {
      isDropped = true;
    },
    receivedBytes: () => receivedBytes,
    get sent() {
      return sent;
    },
    get isDropped() {
      return isDropped;
    },
  };
}

test("pings stand in for frames without anything to say, but for one in fifteen", async () => {
  const [out, back]: [ToyFrame[], ToyFrame[]] = [[], []];
  const pings = fakePings(() => true);
  const paced = { ...fast, pings };
  const link = dial(framedDialer(tapped(framedEnd(echo(), toyShapes, paced), out, back), toyShapes, paced));
  const received = link.all();
  await eventually(() => expect(pings.sent).toBeGreaterThan(15));
  expect(out[0]?.framing).toMatchObject({ heartbeat: durationFromMs(600) });
  for (const frames of [out, back]) expect(frames.length).toBeLessThan(pings.sent / 3);
  await eventually(() => expect(Math.min(out.length, back.length)).toBeGreaterThan(2));
  link.end();
  expect(await received).toEqual([]);
});

test("what was taken is reported at the next heartbeat, pings or not", async () => {
  const out: ToyFrame[] = [];
  const paced = { ...fast, pings: fakePings(() => true) };
  const link = await opened(tapped(framedEnd(echo(), toyShapes, paced), out), paced);
  const received = link.all();
  const began = performance.now();
  await eventually(() => expect(out.at(-1)?.framing?.consumedBytes).toBe(100n));
  expect(performance.now() - began).toBeLessThan(300);
  link.end();
  await received;
});

test("reports once that a connection is suspect, before it is given up, and whether it still is", async () => {
  let answers = true;
  const pings = fakePings(() => answers);
  const reports: boolean[][] = [];
  const slow = { ...fast, heartbeatMs: 80 };
  const far = framedEnd(echo(), toyShapes, { ...slow, pings: fakePings(() => true) });
  const onSuspect = (isStill: () => boolean) => {
    const before = isStill();
    pings.answer();
    reports.push([before, isStill()]);
  };
  const link = await opened(far, { ...slow, pings, onSuspect });
  answers = false;
  await eventually(() => expect(reports).toEqual([[true, false]]));
  // What was answered in the meantime is a silence of its own when that ends.
  await eventually(() => expect(reports).toHaveLength(2));
  link.end();
  await link.all();
});

test("gives up a connection that answers no ping within three heartbeats, long before a frame is missed", async () => {
  let answers = true;
  const pings = fakePings(() => answers);
  const slow = { ...fast, heartbeatMs: 80 };
  const far = framedEnd(echo(), toyShapes, { ...slow, pings: fakePings(() => true) });
  const link = await opened(far, { ...slow, pings });
  await eventually(() => expect(pings.sent).toBeGreaterThan(3));
  answers = false;
  const began = performance.now();
  await expect(link.all()).rejects.toThrow("silent");
  expect(performance.now() - began).toBeLessThan(600);
  expect(pings.isDropped).toBe(true);
});

test("gives up a side whose frames stay out although a proxy answers its pings", async () => {
  const pings = fakePings(() => true);
  const paced = { ...fast, heartbeatMs: 16, pings };
  const far = framedEnd(echo(), toyShapes, paced);
  await fallSilent(far, paced);
  expect(pings.isDropped).toBe(false); // others may be served through the proxy
});

test("a side that is asked sends a frame at once", async () => {
  const out: ToyFrame[] = [];
  let ask = (): void => undefined;
  const far = framedEnd(echo(), toyShapes, {
    onOpen(asks) {
      ask = asks;
    },
  });
  const link = await opened(tapped(far, out), { heartbeatMs: 60_000 });
  const received = link.all();
  const known = out.length;
  for (let asked = 1; asked <= 3; asked++) {
    ask();
    await eventually(() => expect(out).toHaveLength(known + asked));
  }
  link.end();
  await received;
});

const never: Wire = async function* wait() {
  await new Promise(() => undefined);
  yield { toys: [] };
};

test.each([
  { answers: false, isDropped: true, name: "drops a connection without an answer to the dial, nor to a ping" },
  { answers: true, isDropped: false, name: "keeps a connection whose other side is only slow to answer the dial" },
])("$name", async ({ answers, isDropped }) => {
  const pings = fakePings(() => answers);
  const link = dial(framedDialer(never, toyShapes, { heartbeatMs: 16, answerMs: 100, pings }));
  await expect(link.all()).rejects.toThrow("silent");
  expect(pings.isDropped).toBe(isDropped);
});

test("gives up a connection without an answer to a ping long before one to the dial is due", async () => {
  const pings = fakePings(() => false);
  const link = dial(framedDialer(never, toyShapes, { heartbeatMs: 16, answerMs: 60_000, pings }));
  await expect(link.all()).rejects.toThrow("silent");
  expect(pings.isDropped).toBe(true);
});

test("gives up a side that never answers", async () => {
  await expect(dial(framedDialer(never, toyShapes, fast)).all()).rejects.toThrow("silent");
});
