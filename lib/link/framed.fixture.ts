import { setTimeout as sleep } from "node:timers/promises";
import { createBatchQueue } from "../async/batch-queue.ts";
import type { FramedOptions } from "./framed.ts";
import type { Toy, ToyFrame } from "./framing/shape.fixture.ts";
import type { StreamFactory } from "./stream.ts";

export type Wire = StreamFactory<ToyFrame, ToyFrame>;

export const fast: FramedOptions = { heartbeatMs: 40, answerMs: 400, plainAfterMs: 100 };

/** Sends every toy back, and notes what came. */
export function echo(seen: Toy[] = []): Wire {
  return async function* answer(requests) {
    for await (const { toys } of requests) {
      seen.push(...toys);
      if (toys.length > 0) yield { toys };
    }
  };
}

/** A wire on which each frame takes a while. */
export function slowly(wire: Wire, ms: number): Wire {
  async function* delay(frames: AsyncIterable<ToyFrame>) {
    for await (const frame of frames) {
      await sleep(ms);
      yield frame;
    }
  }
  return (requests, signal) => delay(wire(delay(requests), signal));
}

/** A wire that notes the frames of both directions. */
export function tapped(wire: Wire, out: ToyFrame[], back: ToyFrame[] = []): Wire {
  async function* tap(frames: AsyncIterable<ToyFrame>, notes: ToyFrame[]) {
    for await (const frame of frames) {
      notes.push(frame);
      yield frame;
    }
  }
  return (requests, signal) => tap(wire(tap(requests, out), signal), back);
}

/** A dialing side by hand. */
export function dial(dialer: Wire) {
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
