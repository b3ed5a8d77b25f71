import { setTimeout as sleep } from "node:timers/promises";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { eventually } from "../../testkit/eventually.ts";
import { createBatchQueue } from "../async/batch-queue.ts";
import { reasonOf } from "../fault/fault.ts";
import { dialFramed, type FramedOptions, framedDialer, framedEnd } from "./framed.ts";
import { type Toy, type ToyFrame, toy, toyShapes } from "./framing/shape.fixture.ts";
import type { StreamFactory } from "./stream.ts";

type Wire = StreamFactory<ToyFrame, ToyFrame>;

const MIB = 1024 * 1024;
const fast: FramedOptions = { heartbeatMs: 40, answerMs: 400, plainAfterMs: 100 };

/** Sends every toy back, and notes what came. */
function echo(seen: Toy[] = []): Wire {
  return async function* answer(requests) {
    for await (const { toys } of requests) {
      seen.push(...toys);
      if (toys.length > 0) yield { toys };
    }
  };
}

/** A wire on which each frame takes a while. */
function slowly(wire: Wire, ms: number): Wire {
  async function* delay(frames: AsyncIterable<ToyFrame>) {
    for await (const frame of frames) {
      await sleep(ms);
      yield frame;
    }
  }
  return (requests, signal) => delay(wire(delay(requests), signal));
}

/** A wire that notes the frames of both directions. */
function tapped(wire: Wire, out: ToyFrame[], back: ToyFrame[] = []): Wire {
  async function* tap(frames: AsyncIterable<ToyFrame>, notes: ToyFrame[]) {
    for await (const frame of frames) {
      notes.push(frame);
      yield frame;
    }
  }
  return (requests, signal) => tap(wire(tap(requests, out), signal), back);
}

/** A dialing side by hand. */
function dial(dialer: Wire) {
  const queue = createBatchQueue<Toy>();
  const leaving = new AbortController();
  async function* requests() {
    for await (const toys of queue.batches()) yield { toys };
  }
  const incoming = dialer(requests(), leaving.signal);
  return {
    send: (...toys: Toy[]) => {
      for (const each of toys) queue.push(each);
    },
    end: () => queue.end(),
    leave: () => leaving.abort(new Error("left")),
    all: async () => (await Array.fromAsync(incoming)).flatMap(({ toys }) => toys),
    next: async () => {
      const { value } = await incoming[Symbol.asyncIterator]().next();
      return (value as ToyFrame | undefined)?.toys;
    },
  };
}

function fifoOf(toys: readonly Toy[]): Map<string, number[]> {
  const byKey = new Map<string, number[]>();
  for (const { key, number } of toys) byKey.set(key, [...(byKey.get(key) ?? []), number]);
  return byKey;
}

test("carries messages both ways in frames that are numbered from 1", async () => {
  const [out, back]: [ToyFrame[], ToyFrame[]] = [[], []];
  const link = dial(framedDialer(tapped(framedEnd(echo(), toyShapes), out, back), toyShapes));
  link.send(toy("a"));
  expect(await link.next()).toEqual([toy("a")]);
  link.send(toy("b"), toy("c"));
  link.end();
  expect(await link.all()).toEqual([toy("b"), toy("c")]);
  for (const frames of [out, back]) {
    expect(frames.map(({ framing }) => framing?.number)).toEqual(frames.map((_, index) => BigInt(index + 1)));
    expect(frames[0]?.framing).toMatchObject({ windowBytes: BigInt(MIB), heartbeat: durationFromMs(1000) });
  }
});

test("a small item comes back before one of 4 MiB that was sent before it", async () => {
  const link = dial(framedDialer(slowly(framedEnd(echo(), toyShapes), 1), toyShapes));
  link.send(toy("big", 0, 4 * MIB));
  await sleep(5);
  link.send(toy("small"));
  link.end();
  expect((await link.all()).map(({ key }) => key)).toEqual(["small", "big"]);
});

test.each([1, 2, 3, 4, 5, 6, 7, 8])(
  "keeps the order of each key, loses nothing and doubles nothing (%i)",
  async (seed) => {
    let state = seed;
    const random = (below: number): number => {
      state = (state * 1103515245 + 12345) % 2147483648;
      return Math.floor((state / 2147483648) * below);
    };
    const sizes = [100, 100, 100, 5000, 9000, 64 * 1024, 200_000, 1_500_000];
    const numbers = new Map<string, number>();
    const toys = Array.from({ length: 300 }, () => {
      const key = `key-${random(12)}`;
      const number = numbers.get(key) ?? 0;
      numbers.set(key, number + 1);
      return { ...toy(key, number, sizes[random(sizes.length)]), urgent: random(10) === 0 };
    });
    const windowBytes = [8 * 1024, 100_000, MIB][random(3)] ?? MIB;
    const seen: Toy[] = [];
    const link = dial(
      framedDialer(framedEnd(echo(seen), toyShapes, { windowBytes }), toyShapes, { windowBytes, heartbeatMs: 16 }),
    );
    const received = link.all();
    for (const each of toys) {
      link.send(each);
      if (random(4) === 0) await sleep(0);
    }
    link.end();
    const expected = fifoOf(toys);
    expect(fifoOf(await received)).toEqual(expected);
    expect(fifoOf(seen)).toEqual(expected);
  },
);

test("takes no more from the source than the reader's window and its own backlog hold", async () => {
  let pulled = 0;
  async function* endless() {
    for (; ; pulled++) yield { toys: [toy("a", pulled, 64 * 1024)] };
  }
  const release = Promise.withResolvers<void>();
  const seen: number[] = [];
  const slow: Wire = async function* read(requests) {
    for await (const { toys } of requests) {
      seen.push(...toys.map(({ number }) => number));
      await release.promise;
      if (seen.length > 200) yield { toys: [] };
      if (seen.length > 200) return;
    }
  };
  const incoming = framedDialer(framedEnd(slow, toyShapes), toyShapes)(endless(), new AbortController().signal);
  const done = Array.fromAsync(incoming);
  await eventually(() => expect(pulled).toBeGreaterThan(20));
  await sleep(50);
  expect(pulled).toBeLessThan(40);
  release.resolve();
  await done;
  expect(seen.length).toBeGreaterThan(200);
  expect(seen).toEqual(seen.map((_, index) => index));
});

test("a side without framing gets none: the dialed one", async () => {
  const out: ToyFrame[] = [];
  const link = dial(framedDialer(tapped(echo(), out), toyShapes, fast));
  link.send(toy("a"));
  expect(await link.next()).toEqual([toy("a")]);
  link.send(toy("b", 0, 3 * MIB), toy("b", 1));
  link.end();
  expect(fifoOf(await link.all())).toEqual(new Map([["b", [0, 1]]]));
  const later = out.filter(({ toys }) => toys.some(({ key }) => key === "b"));
  expect(later.length).toBeGreaterThan(0);
  expect(later.filter(({ framing }) => framing !== undefined)).toEqual([]);
});

test("a side without framing gets none: the dialing one", async () => {
  const link = dial(framedEnd(echo(), toyShapes, fast));
  link.send(toy("a"));
  link.end();
  expect(
    await Array.fromAsync(framedEnd(echo(), toyShapes)(once({ toys: [toy("a")] }), new AbortController().signal)),
  ).toEqual([{ toys: [toy("a")] }]);
  expect(await link.all()).toEqual([toy("a")]);
});

test("a side that says nothing at first is spoken to without framing", async () => {
  const first: Wire = async function* speak() {
    yield { toys: [toy("hello")] };
  };
  expect(await dial(framedEnd(first, toyShapes, fast)).all()).toEqual([toy("hello")]);
});

test("stays up without anything to say, and says so at every heartbeat", async () => {
  const [out, back]: [ToyFrame[], ToyFrame[]] = [[], []];
  const link = dial(framedDialer(tapped(framedEnd(echo(), toyShapes, fast), out, back), toyShapes, fast));
  const received = link.all();
  await eventually(() => expect(Math.min(out.length, back.length)).toBeGreaterThan(8));
  link.end();
  expect(await received).toEqual([]);
});

test("both sides give up one that falls silent", async () => {
  let isDead = false;
  async function* lossy(frames: AsyncIterable<ToyFrame>) {
    for await (const frame of frames) {
      if (isDead) await new Promise(() => undefined);
      yield frame;
    }
  }
  const ends: unknown[] = [];
  const server: Wire = (requests, signal) => {
    signal.addEventListener("abort", () => ends.push(signal.reason));
    return echo()(requests, signal);
  };
  const far = framedEnd(server, toyShapes, fast);
  const link = dial(framedDialer((requests, signal) => lossy(far(lossy(requests), signal)), toyShapes, fast));
  link.send(toy("a"));
  expect(await link.next()).toEqual([toy("a")]);
  isDead = true;
  await expect(link.all()).rejects.toThrow("silent");
  await eventually(() => expect(ends.map(reasonOf)).toEqual([ErrorReason.NOT_READY]));
});

/** Pings that are answered at once for as long as `answers` says, and the pings that were sent. */
function fakePings(answers: () => boolean) {
  let receivedBytes = 0;
  let sent = 0;
  let isDropped = false;
  return {
    ping() {
      sent++;
      if (answers()) receivedBytes += 17;
    },
    drop() {
      isDropped = true;
    },
    get receivedBytes() {
      return receivedBytes;
    },
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
  const link = dial(framedDialer(tapped(framedEnd(echo(), toyShapes, paced), out), toyShapes, paced));
  link.send(toy("a"));
  expect(await link.next()).toEqual([toy("a")]);
  const received = link.all();
  const began = performance.now();
  await eventually(() => expect(out.at(-1)?.framing?.consumedBytes).toBe(100n));
  expect(performance.now() - began).toBeLessThan(300);
  link.end();
  await received;
});

test("gives up a connection that answers no ping within three heartbeats, long before a frame is missed", async () => {
  let answers = true;
  const pings = fakePings(() => answers);
  const slow = { ...fast, heartbeatMs: 80 };
  const far = framedEnd(echo(), toyShapes, { ...slow, pings: fakePings(() => true) });
  const link = dial(framedDialer(far, toyShapes, { ...slow, pings }));
  link.send(toy("a"));
  expect(await link.next()).toEqual([toy("a")]);
  await eventually(() => expect(pings.sent).toBeGreaterThan(3));
  answers = false;
  const began = performance.now();
  await expect(link.all()).rejects.toThrow("silent");
  expect(performance.now() - began).toBeLessThan(600);
  expect(pings.isDropped).toBe(true);
});

test("gives up a side whose frames stay out although a proxy answers its pings", async () => {
  let isDead = false;
  async function* lossy(frames: AsyncIterable<ToyFrame>) {
    for await (const frame of frames) {
      if (isDead) await new Promise(() => undefined);
      yield frame;
    }
  }
  const pings = fakePings(() => true);
  const paced = { ...fast, heartbeatMs: 16, pings };
  const far = framedEnd(echo(), toyShapes, paced);
  const link = dial(framedDialer((requests, signal) => lossy(far(lossy(requests), signal)), toyShapes, paced));
  link.send(toy("a"));
  expect(await link.next()).toEqual([toy("a")]);
  isDead = true;
  await expect(link.all()).rejects.toThrow("silent");
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
  const link = dial(framedDialer(tapped(far, out), toyShapes, { heartbeatMs: 60_000 }));
  link.send(toy("a"));
  expect(await link.next()).toEqual([toy("a")]);
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

test("a gap in the numbers ends the link", async () => {
  async function* skip(frames: AsyncIterable<ToyFrame>) {
    for await (const frame of frames) if (frame.framing?.number !== 2n) yield frame;
  }
  const far = framedEnd(echo(), toyShapes);
  const link = dial(framedDialer((requests, signal) => far(skip(requests), signal), toyShapes));
  link.send(toy("a"));
  await sleep(1);
  link.send(toy("b"));
  await sleep(1);
  link.send(toy("c"));
  await expect(link.all()).rejects.toSatisfy((error) => reasonOf(error) === ErrorReason.INVALID_INPUT);
});

test("each side learns that the other drains, and what runs is still reported", async () => {
  const drained: string[] = [];
  const leaving = { near: new AbortController(), far: new AbortController() };
  const far = framedEnd(echo(), toyShapes, {
    draining: leaving.far.signal,
    onDrain: () => drained.push("near leaves"),
  });
  const near = { draining: leaving.near.signal, onDrain: () => drained.push("far leaves") };
  const link = dial(framedDialer(far, toyShapes, near));
  link.send(toy("a"));
  expect(await link.next()).toEqual([toy("a")]);
  leaving.far.abort();
  await eventually(() => expect(drained).toEqual(["far leaves"]));
  leaving.near.abort();
  await eventually(() => expect(drained).toEqual(["far leaves", "near leaves"]));
  link.send(toy("b"));
  expect(await link.next()).toEqual([toy("b")]);
  link.end();
  expect(await link.all()).toEqual([]);
});

test("a side that dials can serve what comes", async () => {
  const seen: Toy[] = [];
  const questions = createBatchQueue<Toy>();
  const asking: Wire = async function* ask(answers) {
    void (async () => {
      for await (const { toys } of answers) seen.push(...toys);
    })();
    for await (const toys of questions.batches()) yield { toys };
  };
  const dialed = dialFramed(echo(), framedEnd(asking, toyShapes), toyShapes, new AbortController().signal);
  questions.push(toy("a"));
  questions.push(toy("b", 0, 2 * MIB));
  await eventually(() => expect(seen.map(({ key }) => key)).toEqual(["a", "b"]));
  questions.end();
  await dialed;
});

test("leaves at once when its signal is aborted", async () => {
  const ends: unknown[] = [];
  const server: Wire = (requests, signal) => {
    signal.addEventListener("abort", () => ends.push(signal.reason));
    return echo()(requests, signal);
  };
  const link = dial(framedDialer(framedEnd(server, toyShapes), toyShapes));
  link.send(toy("a"));
  await link.next();
  const received = link.all();
  link.leave();
  await expect(received).rejects.toThrow("left");
  await eventually(() => expect(ends).toHaveLength(1));
});

async function* once(frame: ToyFrame) {
  yield frame;
}
