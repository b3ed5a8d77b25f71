import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { type DeviceFrame, DeviceFrameSchema } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { eventually } from "../../../testkit/eventually.ts";
import { createRoute, type Way } from "./route.ts";

async function* nothing() {
  // No commands.
}

/** A way whose stream stays open until it is told to leave. */
function openWay(key: string): Way & { open: number } {
  const way = {
    key,
    open: 0,
    async *dialer(_: AsyncIterable<unknown>, signal: AbortSignal): AsyncGenerator<DeviceFrame> {
      way.open++;
      yield create(DeviceFrameSchema);
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      way.open--;
    },
  };
  return way;
}

/** Goes along the route until its stream ends. */
async function travel(route: ReturnType<typeof createRoute>, signal = new AbortController().signal): Promise<number> {
  let count = 0;
  for await (const _ of route.dialer(nothing(), signal)) count++;
  return count;
}

test("waits until there is a way, and takes it at once", async () => {
  let way: Way | undefined;
  const route = createRoute(() => way);
  const traveling = travel(route);
  const here = openWay("here");
  way = here;
  route.update();
  await eventually(() => expect(here.open).toBe(1));
  way = undefined;
  route.update();
  expect(await traveling).toBe(1);
  expect(here.open).toBe(0);
});

test("leaves a way for a better one, and stays on one that is still the best", async () => {
  const [old, better] = [openWay("old"), openWay("better")];
  let best = old;
  const route = createRoute(() => best);
  const traveling = travel(route);
  await eventually(() => expect(route.way?.key).toBe("old"));
  route.update();
  expect(old.open).toBe(1);
  best = better;
  route.update();
  await traveling;
  const again = travel(route);
  await eventually(() => expect(better.open).toBe(1));
  expect(old.open).toBe(0);
  best = openWay("yet another");
  route.update();
  await again;
});

test("ends when whoever asked has left, whether there is a way or not", async () => {
  const leaving = new AbortController();
  const waiting = travel(
    createRoute(() => undefined),
    leaving.signal,
  );
  const here = openWay("here");
  const going = travel(
    createRoute(() => here),
    leaving.signal,
  );
  await eventually(() => expect(here.open).toBe(1));
  leaving.abort();
  expect(await waiting).toBe(0);
  await going;
  expect(here.open).toBe(0);
});
