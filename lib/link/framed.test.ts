import { setTimeout as sleep } from "node:timers/promises";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { eventually } from "../../testkit/eventually.ts";
import { createBatchQueue } from "../async/batch-queue.ts";
import { reasonOf } from "../fault/fault.ts";
import { dial, echo, fast, slowly, tapped, type Wire } from "./framed.fixture.ts";
import { dialFramed, framedDialer, framedEnd } from "./framed.ts";
import { type Toy, type ToyFrame, toy, toyShapes } from "./framing/shape.fixture.ts";

const MIB = 1024 * 1024;

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
